// What stands around the fields: notices, the file, the check findings, the status.

import { button, element, filled, isolated } from "./dom.js";
import { currentLanguage, count, has, reason, text } from "./texts.js";

// A notice is {tone, title, lines, code, commands, buttons: [[name, action, primary]]}; title and
// lines are names of texts or nodes, so that a change of the language can build it again.
export function buildNotice(notice) {
  const lines = (notice.lines ?? []).filter(Boolean);
  return element(
    "div",
    { class: `notice ${notice.tone}`, role: notice.tone === "ok" ? "status" : "alert", tabindex: "-1" },
    element("h2", {}, text(notice.title)),
    ...lines.map((line) => element("p", {}, ...worded(line))),
    notice.code ? element("p", { class: "code mono" }, notice.code) : null,
    notice.commands ? element("pre", {}, notice.commands) : null,
    notice.buttons
      ? element(
          "div",
          { class: "buttons" },
          ...notice.buttons.map(([name, action]) => button(text(name), action)),
        )
      : null,
  );
}

function worded(line) {
  if (typeof line === "string") return [text(line)];
  if ("server" in line) return [isolated(reason(line.server))];
  return filled(text(line.name), line.values);
}

export function buildFile(form, stage, canStage) {
  const own = Object.values(form.fields).filter((field) => "own" in field).length;
  const about = !form.file.exists
    ? text("file_absent")
    : own === 0
      ? text("file_sets_none")
      : count("file_sets", own);
  const stageButton = button(text("stage_inherited"), () => canStage && stage(), {
    id: "stage",
    "aria-describedby": "stage-hint",
    "aria-disabled": canStage ? null : "true",
    title: text("stage_inherited_hint"),
  });
  return [
    element(
      "div",
      { class: "words" },
      element("p", { class: "path mono" }, isolated(form.file.path)),
      element("p", { class: "about" }, about),
    ),
    stageButton,
    element("span", { id: "stage-hint", hidden: true }, text("stage_inherited_hint")),
  ];
}

export function buildFindings(kind, findings, subject) {
  const items = findings.map((finding) => {
    const advice = finding.advice ? `finding_${finding.advice}` : null;
    const values = { ...finding };
    if (typeof finding.reason === "string") values.reason = reason(finding.reason);
    return element(
      "li",
      { class: finding.state },
      element(
        "span",
        {},
        ...filled(text(`finding_${finding.id}`), values),
        advice && has(advice) ? element("span", { class: "advice" }, ...filled(text(advice), values)) : null,
      ),
    );
  });
  return [
    element("ul", {}, ...items),
    element("p", { class: "subject" }, ...filled(text(`checked_subject_${kind}`), subject)),
  ];
}

// The status value as it comes: a block for each of its parts, a line for each fact. The settings
// are left out, because the page shows them above.
export function buildStatus(facts) {
  const general = {};
  const blocks = [];
  for (const [name, value] of Object.entries(facts)) {
    if (name === "settings") continue;
    if (isMapping(value)) blocks.push([name, value]);
    else general[name] = value;
  }
  return [["general", general], ...blocks].map(([name, values]) =>
    element(
      "div",
      { class: "facts-block" },
      element("h3", {}, named(name)),
      element(
        "dl",
        {},
        ...lines(values).map(([path, value]) =>
          element(
            "div",
            { class: path.at(-1) === "problem" ? "bad" : null },
            element("dt", {}, path.map(named).join(" · ")),
            element("dd", {}, isolated(value)),
          ),
        ),
      ),
    ),
  );
}

function lines(value, path = []) {
  return Object.entries(value).flatMap(([name, item]) => {
    if (isMapping(item)) return lines(item, [...path, name]);
    if (Array.isArray(item)) return item.map((part) => [[...path, name], plain(part)]);
    return [[[...path, name], plain(item)]];
  });
}

function plain(value) {
  if (value === null) return text("unset");
  if (typeof value === "boolean") return text(value ? "yes" : "no");
  if (isMapping(value)) return lines(value).map(([path, item]) => `${path.map(named).join(" ")} ${item}`).join(", ");
  const words = reason(String(value));
  return /^[0-9a-f]{64}$/.test(words) ? `${words.slice(0, 12)}…` : words; // a revision
}

function named(name) {
  return has(`status_${name}`) ? text(`status_${name}`) : name.replaceAll("_", " ");
}

function isMapping(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function languageButtons(choose) {
  for (const node of document.querySelectorAll("[data-language]")) {
    node.addEventListener("click", () => choose(node.dataset.language));
  }
}

export function markLanguage() {
  for (const node of document.querySelectorAll("[data-language]")) {
    node.setAttribute("aria-pressed", String(node.dataset.language === currentLanguage()));
  }
}
