// The page's language: the browser's at first, then the one that was chosen in this tab.

import en from "./texts-en.js";
import zh from "./texts-zh.js";

const STORED = "dsh-memory-language";
const CATALOGUES = { en, zh };
let language = sessionStorage.getItem(STORED) ?? browserLanguage();

function browserLanguage() {
  for (const tag of navigator.languages ?? [navigator.language]) {
    if (/^zh\b/i.test(tag)) return "zh";
    if (/^en\b/i.test(tag)) return "en";
  }
  return "en";
}

export function currentLanguage() {
  return language;
}

export function chooseLanguage(name) {
  language = name;
  sessionStorage.setItem(STORED, name);
}

export function languageTag() {
  return language === "zh" ? "zh-CN" : "en";
}

export function text(name) {
  return CATALOGUES[language][name] ?? en[name] ?? name;
}

export function has(name) {
  return name in CATALOGUES[language] || name in en;
}

export function count(name, number) {
  return text(number === 1 ? `${name}_one` : `${name}_many`).replace("{n}", String(number));
}

// Label and meaning of a setting. The English meaning is the settings model's own.
export function label(key) {
  return CATALOGUES[language].labels[key] ?? en.labels[key] ?? key;
}

export function meaning(key, schema) {
  return CATALOGUES[language].meanings[key] ?? schema.description ?? "";
}

export function choice(key, value) {
  return CATALOGUES[language].choices[`${key}=${value}`] ?? en.choices[`${key}=${value}`] ?? "";
}

// A reason that the server gave in English, in the page's language where its wording is known.
export function reason(sentence) {
  for (const [pattern, translation] of CATALOGUES[language].reasons) {
    const match = pattern.exec(sentence);
    if (match) return translation.replace(/\$(\d)/g, (_, index) => match[Number(index)] ?? "");
  }
  return sentence;
}
