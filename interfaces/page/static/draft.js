// The unsaved draft: key -> what the user wants. It lives in this tab's memory only.

export class Draft {
  #entries = new Map();

  get size() {
    return this.#entries.size;
  }

  has(key) {
    return this.#entries.has(key);
  }

  get(key) {
    return this.#entries.get(key);
  }

  keys() {
    return [...this.#entries.keys()];
  }

  clear() {
    this.#entries.clear();
  }

  snapshot() {
    return new Map(this.#entries);
  }

  // Forget what was saved, but not what was edited again while the save was under way.
  settle(saved) {
    for (const [key, entry] of saved) {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    }
  }

  forget(key) {
    this.#entries.delete(key);
  }

  // `text` is what the control shows; `value` what is sent. Both are kept, so that an invalid text
  // survives a change of the language.
  set(key, field, value, text) {
    const own = "own" in field;
    if (own ? same(value, field.own) : same(value, field.inherited)) {
      this.#entries.delete(key);
    } else {
      this.#entries.set(key, { op: "set", value, text });
    }
  }

  // Inherit again: remove the user's own value, or just forget the edit where there is none.
  unset(key, field, text) {
    if (field === undefined || "own" in field) this.#entries.set(key, { op: "unset", text });
    else this.#entries.delete(key);
  }

  operations() {
    return [...this.#entries].map(([key, entry]) =>
      entry.op === "set" ? { op: "set", key, value: entry.value } : { op: "unset", key },
    );
  }
}

// What a control of this field shows, staged edits included.
export function shownValue(field, entry) {
  if (entry?.op === "set") return entry.value;
  if (entry?.op === "unset") return field.inherited;
  return "own" in field ? field.own : field.inherited;
}

// The server judges the value; here only the JSON type follows the schema's type, and a text that
// is no number is sent as it stands, so that the answer can quote it.
export function valueOf(schema, text) {
  if (schema.type !== "integer" && schema.type !== "number") return text;
  const trimmed = text.trim();
  return /^[+-]?\d{1,15}(\.\d+)?$/.test(trimmed) ? Number(trimmed) : text;
}

function same(a, b) {
  return a === b;
}
