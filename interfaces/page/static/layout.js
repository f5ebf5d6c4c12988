// The page's frame: headings, groups, the list of sections, and the texts that never change.

import { button, byId, element } from "./dom.js";
import { buildField } from "./fields.js";
import { markLanguage } from "./panels.js";
import { languageTag, text } from "./texts.js";

// Group -> what its check button looks at.
export const CHECKS = { jev: "endpoint", obsidian: "vault" };

export function groupHead(id, control) {
  return element(
    "header",
    {},
    element(
      "div",
      { class: "words" },
      element("h2", { id: `${id}-title` }, text(`group_${id}`)),
      element("p", {}, text(`group_${id}_about`)),
    ),
    control,
  );
}

export function buildGroup({ id, fields }, form, actions, check) {
  const control =
    id in CHECKS
      ? button(text(`check_${CHECKS[id]}`), () => check(id), { id: `check-${id}` })
      : null;
  const section = element("section", { class: "group", id, "aria-labelledby": `${id}-title` }, groupHead(id, control));
  if (control !== null) section.append(element("div", { class: "findings", id: `findings-${id}`, role: "status", hidden: true }));
  const parts = new Set(fields.map((key) => key.split(".")[0]));
  let part = null;
  for (const key of fields) {
    const [name] = key.split(".");
    if (parts.size > 1 && name !== part) section.append(element("h3", {}, text(`section_${name}`)));
    part = name;
    section.append(buildField(key, form.fields[key], actions));
  }
  return section;
}

export function buildSections(ids) {
  return ids.map((id) =>
    element(
      "li",
      {},
      element(
        "a",
        { href: `#${id}`, id: `section-${id}` },
        text(`group_${id}`),
        element("span", { class: "count", id: `section-${id}-count`, hidden: true }),
      ),
    ),
  );
}

export function markSection(ids) {
  const line = window.innerHeight / 3;
  let current = ids[0];
  for (const id of ids) {
    const node = byId(id);
    if (!node.hidden && node.getBoundingClientRect().top <= line) current = id;
  }
  if (window.innerHeight + window.scrollY >= document.body.scrollHeight - 2 && window.scrollY > 0) current = ids.at(-1);
  for (const id of ids) {
    const link = byId(`section-${id}`);
    if (id !== current) {
      link.removeAttribute("aria-current");
    } else if (!link.hasAttribute("aria-current")) {
      link.setAttribute("aria-current", "true");
      byId("sections").scrollTo({ left: link.offsetLeft - 24 }); // the strip of a narrow window
    }
  }
}

export function showStatics(version) {
  document.documentElement.lang = languageTag();
  document.title = `dsh-memory – ${text("title")}`;
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = text(node.dataset.text);
  for (const node of document.querySelectorAll("[data-label]")) node.setAttribute("aria-label", text(node.dataset.label));
  byId("version").textContent = version;
  markLanguage();
}

export function setDisabled(node, disabled) {
  if (disabled) node.setAttribute("aria-disabled", "true");
  else node.removeAttribute("aria-disabled");
}

// How many edits, or refused values, each group has.
export function showCounts(groups, draft, problems) {
  for (const { id, fields } of groups) {
    const badge = byId(`section-${id}-count`);
    const bad = fields.filter((key) => key in problems).length;
    const edits = fields.filter((key) => draft.has(key)).length;
    badge.hidden = edits === 0 && bad === 0;
    badge.className = bad > 0 ? "count bad" : "count";
    badge.replaceChildren(
      String(bad > 0 ? bad : edits),
      element("span", { class: "unseen" }, ` ${text(bad > 0 ? "refused_count" : "edited_count")}`),
    );
  }
}
