// One row a setting: label and meaning, control, and where its value comes from.

import { byId, button, element, filled, isolated } from "./dom.js";
import { shownValue, valueOf } from "./draft.js";
import { choice, label, meaning, reason, text } from "./texts.js";

const idOf = (key) => `field-${key.replace(".", "-")}`;

// Build the row. `actions` are {edit(key, value, text), inherit(key, text), undo(key)}.
export function buildField(key, field, actions) {
  const id = idOf(key);
  return element(
    "div",
    { class: "field", id: `${id}-row`, "data-key": key },
    element(
      "div",
      { class: "words" },
      element("label", { class: "name", for: id, id: `${id}-label` }, label(key)),
      element("code", { class: "key" }, key),
      element("p", { class: "meaning", id: `${id}-meaning` }, meaning(key, field.schema)),
    ),
    element(
      "div",
      { class: "control" },
      buildControl(key, id, field, actions),
      element("p", { class: "problem", id: `${id}-problem` }),
      element("p", { class: "staged", id: `${id}-staged` }),
      element("p", { class: "overridden", id: `${id}-overridden` }),
      element(
        "div",
        { class: "meta" },
        element("div", { class: "facts", id: `${id}-facts` }),
        element(
          "div",
          { class: "small-buttons" },
          button(text("undo"), () => actions.undo(key), {
            class: "link",
            id: `${id}-undo`,
            "aria-describedby": `${id}-label`,
          }),
          button(text("inherit"), () => actions.inherit(key), {
            class: "link",
            id: `${id}-inherit`,
            "aria-describedby": `${id}-label`,
          }),
        ),
      ),
    ),
  );
}

function buildControl(key, id, field, actions) {
  const { schema } = field;
  const described = { id, "aria-describedby": `${id}-problem ${id}-meaning` };
  if (schema.type === "boolean") {
    const box = element("input", {
      ...described,
      type: "checkbox",
      role: "switch",
      class: "switch",
      on: { change: () => actions.edit(key, box.checked, null) },
    });
    return element("label", { class: "toggle" }, box, element("span", { id: `${id}-state`, "aria-hidden": "true" }));
  }
  if (Array.isArray(schema.enum)) {
    const select = element("select", {
      ...described,
      on: { change: () => actions.edit(key, select.value, null) },
    });
    for (const value of schema.enum) {
      const words = choice(key, value);
      select.append(element("option", { value }, words === "" ? value : `${value} – ${words}`));
    }
    return select;
  }
  const numeric = schema.type === "integer" || schema.type === "number";
  const input = element("input", {
    ...described,
    type: "text",
    class: numeric ? "number" : null,
    inputmode: numeric ? "decimal" : null,
    autocomplete: "off",
    autocapitalize: "off",
    autocorrect: "off",
    spellcheck: "false",
    on: {
      input: () => {
        if (schema.nullable && input.value.trim() === "") actions.inherit(key, input.value);
        else actions.edit(key, valueOf(schema, input.value), input.value);
      },
      blur: () => actions.settle(key),
    },
  });
  return input;
}

// Bring a row up to date with its field, its staged edit and its problem.
export function updateField(key, field, entry, problem) {
  const id = idOf(key);
  const row = byId(`${id}-row`);
  const control = byId(id);
  row.classList.toggle("edited", entry !== undefined);
  row.classList.toggle("invalid", problem !== undefined);
  const bad = problem !== undefined;
  control.setAttribute("aria-invalid", String(bad));
  byId(`${id}-problem`).replaceChildren(bad ? reason(problem.reason) : "");
  showValue(control, id, field, entry);
  showFacts(id, field);
  byId(`${id}-staged`).replaceChildren(...staged(field, entry, bad));
  byId(`${id}-overridden`).replaceChildren(...overridden(field));
  byId(`${id}-undo`).hidden = entry === undefined;
  byId(`${id}-inherit`).hidden = !("own" in field) || entry?.op === "unset";
}

function showValue(control, id, field, entry) {
  const value = shownValue(field, entry);
  if (control.type === "checkbox") {
    control.checked = value === true;
    byId(`${id}-state`).textContent = text(value === true ? "on" : "off");
    return;
  }
  if (control.tagName === "SELECT") {
    control.value = String(value);
    return;
  }
  control.placeholder = field.inherited === null ? text("unset") : String(field.inherited);
  if (document.activeElement === control && entry !== undefined && entry.text !== undefined) return;
  control.value = entry?.op === "set" && entry.text !== null ? entry.text : value === null ? "" : String(value);
}

function showFacts(id, field) {
  const facts = [];
  if (field.in_effect === null) {
    facts.push(element("span", {}, text("unknown_effect")));
  } else {
    const { value, layer } = field.in_effect;
    facts.push(
      element(
        "span",
        {},
        ...filled(text("in_effect"), { value: isolated(worded(value)) }),
        element("span", { class: `layer ${layer}` }, text(`layer_${layer}`)),
      ),
    );
  }
  facts.push(element("span", {}, ...filled(text("default_is"), { value: isolated(worded(field.default)) })));
  byId(`${id}-facts`).replaceChildren(...facts);
}

function staged(field, entry, bad) {
  if (entry === undefined || bad) return [];
  if (entry.op === "unset") {
    return filled(text("after_saving_inherited"), {
      value: isolated(worded(field.inherited)),
      layer: document.createTextNode(text(`layer_${field.inherited_layer}`)),
    });
  }
  return filled(text("after_saving"), { value: isolated(worded(entry.value)) });
}

function overridden(field) {
  const layer = field.in_effect?.layer;
  if (layer !== "environment" && layer !== "command-line") return [];
  return filled(text(`overridden_${layer}`), { variable: element("code", {}, field.environment) });
}

// A value in words.
export function worded(value) {
  if (value === true) return text("on");
  if (value === false) return text("off");
  if (value === null || value === undefined) return text("unset");
  return value === "" ? text("empty") : String(value);
}

export function focusField(key) {
  const control = byId(idOf(key));
  control?.scrollIntoView({ block: "center" });
  control?.focus({ preventScroll: true });
}
