// Building elements. Text becomes text nodes, here and everywhere: no value is ever parsed as HTML.

export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function button(text, onClick, attributes = {}) {
  return element("button", { type: "button", ...attributes, on: { click: onClick } }, text);
}

export function byId(id) {
  return document.getElementById(id);
}

// A value inside a sentence: its own direction, so that it cannot reorder the words around it.
export function isolated(text) {
  return element("bdi", {}, text);
}

// A template with {name} places, filled with strings or nodes.
export function filled(template, values = {}) {
  const parts = template.split(/\{([a-z_]+)\}/);
  return parts.map((part, index) => {
    if (index % 2 === 0) return part;
    const value = values[part];
    return value instanceof Node ? value : isolated(String(value ?? ""));
  });
}
