// The page: one form as the server read it, one draft on top of it, and what happened last.

import { get, openSession, post, Refused, ServerGone } from "./api.js";
import { commandsOf } from "./commands.js";
import { button, byId, element, filled } from "./dom.js";
import { Draft } from "./draft.js";
import { focusField, updateField } from "./fields.js";
import { buildGroup, buildSections, CHECKS, groupHead, markSection, setDisabled, showCounts, showStatics } from "./layout.js";
import { buildFile, buildFindings, buildNotice, buildStatus, languageButtons } from "./panels.js";
import { chooseLanguage, count, languageTag, text } from "./texts.js";

const LOOK_EVERY_MS = 5000;
const JUDGE_AFTER_MS = 250;

const draft = new Draft();
let form = null;
let version = "";
let problems = {};
let event = null; // what happened last, as a notice
let gone = false;
let saving = false;
let outdated = false; // the file is no longer the one that the form shows
let judging = 0;
let timer = null;
const findings = {}; // group -> {findings, subject} | "running"
let status = null; // {text} | {error}

const actions = {
  edit(key, value, shown) {
    draft.set(key, form.fields[key], value, shown);
    edited(key);
  },
  inherit(key, shown) {
    draft.unset(key, form.fields[key], shown);
    edited(key);
  },
  undo(key) {
    draft.forget(key);
    edited(key);
    focusField(key);
  },
  settle(key) {
    updateRow(key);
  },
};

function edited(key) {
  delete problems[key];
  if (event?.tone === "ok" || event?.title === "notice_invalid") event = null;
  const group = form.groups.find(({ fields }) => fields.includes(key))?.id;
  if (group in findings && findings[group] !== "running") {
    delete findings[group];
    showFindings(group);
  }
  showState();
  clearTimeout(timer);
  timer = setTimeout(judge, JUDGE_AFTER_MS);
}

// Ask the server what it thinks of the draft. It writes nothing.
async function judge() {
  const asked = ++judging;
  if (draft.size === 0) {
    problems = {};
    showState();
    return;
  }
  try {
    const answer = await post("problems", draftBody());
    if (asked !== judging) return;
    problems = ofFields(answer.problems);
    showState();
  } catch (error) {
    failed(error);
  }
}

function draftBody() {
  return { revision: form.revision, operations: draft.operations() };
}

function ofFields(found) {
  return Object.fromEntries(Object.entries(found).filter(([key]) => key in form.fields));
}

async function save() {
  if (saving || draft.size === 0 || form.lock !== null) return;
  clearTimeout(timer);
  judging += 1;
  saving = true;
  event = null;
  const sent = draft.snapshot();
  showState();
  try {
    form = await post("save", draftBody());
    draft.settle(sent);
    problems = {};
    outdated = false;
    event = { tone: "ok", title: "notice_saved", lines: ["notice_saved_detail"], buttons: [["close", closeEvent]] };
    saving = false;
    showAll();
    void readStatus();
    return;
  } catch (error) {
    failed(error, true);
  } finally {
    saving = false;
  }
  showState();
  attend();
}

// Put a failure into words. The draft stays as it is, and nothing is tried again.
function failed(error, bySave = false) {
  if (error instanceof ServerGone) {
    gone = true;
  } else if (!(error instanceof Refused)) {
    throw error;
  } else if (error.status === 401) {
    event = { tone: "error", title: "notice_session", lines: ["notice_session_detail"], commands: rescue() };
  } else if (error.error.code === "CONFIG_CONFLICT") {
    outdated = true;
    event = conflict("notice_conflict", "notice_conflict_detail", error.error.code);
  } else if (error.problems !== null && Object.keys(ofFields(error.problems)).length > 0) {
    problems = ofFields(error.problems);
    event = { tone: "error", title: "notice_invalid", lines: ["notice_invalid_detail"], first: Object.keys(problems)[0] };
  } else {
    const write = error.error.code === "CONFIG_WRITE_FAILED";
    event = {
      tone: "error",
      title: write ? "notice_write_failed" : bySave ? "notice_invalid" : "notice_failed",
      lines: [{ server: error.error.message }, write ? "notice_write_failed_detail" : error.error.hint && { server: error.error.hint }],
      code: error.error.code,
    };
  }
  showState();
}

function conflict(title, detail, code) {
  return {
    tone: "warn",
    title,
    lines: [detail],
    code,
    buttons: [
      ["keep_draft", () => reload()],
      ["drop_draft", () => reload({ drop: true })],
    ],
  };
}

function rescue() {
  return draft.size === 0 ? null : commandsOf(draft.operations(), form.config_option);
}

function closeEvent() {
  event = null;
  showState();
}

// Read the file again: on demand, or by itself when there is no draft to disturb.
async function reload({ drop = false } = {}) {
  try {
    form = await get("form");
    outdated = false;
    event = null;
    if (drop) draft.clear();
    problems = {};
    if (draft.size > 0) {
      event = { tone: "warn", title: "notice_rebased", lines: ["notice_rebased_detail"] };
    }
    showAll();
    if (draft.size > 0) void judge();
    void readStatus();
  } catch (error) {
    failed(error);
  }
}

async function discard() {
  draft.clear();
  problems = {};
  judging += 1;
  clearTimeout(timer);
  await reload({ drop: true });
}

function stageInherited() {
  for (const [key, field] of Object.entries(form.fields)) {
    draft.unset(key, field);
    delete problems[key];
  }
  for (const name of form.stray) draft.unset(name);
  event = null;
  showAll();
  void judge();
}

// Notice by looking that the server stopped, or that someone else wrote the file.
async function look() {
  if (form === null || gone || saving || document.visibilityState !== "visible") return;
  const seen = form;
  try {
    const { revision } = await get("revision");
    if (saving || form !== seen || revision === form.revision) return;
    if (draft.size === 0) {
      await reload();
    } else if (!outdated) {
      outdated = true;
      event = conflict("notice_changed", "notice_changed_detail", null);
      showState();
    }
  } catch (error) {
    failed(error);
  }
}

async function lookAgain() {
  gone = false;
  await look();
  showState();
}

async function check(group) {
  if (findings[group] === "running") return;
  const kind = CHECKS[group];
  findings[group] = "running";
  showFindings(group);
  try {
    const answer = await post(`check/${kind}`, draftBody());
    findings[group] = { findings: answer.findings, subject: answer.subject };
  } catch (error) {
    delete findings[group];
    failed(error);
  }
  showFindings(group);
}

async function readStatus() {
  try {
    status = { facts: (await get("status")).status };
  } catch (error) {
    if (error instanceof Refused && error.status === 422) status = { error: error.error.message };
    else failed(error);
  }
  showStatus();
}

// Showing

function notices() {
  const list = [];
  if (gone) {
    const commands = form === null ? null : rescue();
    list.push({
      tone: "error",
      title: "notice_gone",
      lines: ["notice_gone_detail", commands && "notice_gone_draft"],
      commands,
      buttons: form === null ? null : [["look_again", lookAgain]],
    });
  } else if (event !== null) {
    list.push(event);
  }
  if (form?.problem) {
    list.push({
      tone: "error",
      title: "notice_file",
      lines: [
        { server: form.problem.message },
        form.problem.hint && { server: form.problem.hint },
        form.stray.length > 0 && { name: "notice_stray", values: { names: form.stray.join(", ") } },
        "notice_file_detail",
      ],
      code: form.problem.code,
    });
  }
  if (form?.lock) list.push({ tone: "warn", title: "notice_locked", lines: [`notice_locked_${form.lock}`] });
  return list;
}

function attend() {
  if (event?.first) {
    focusField(event.first);
    return;
  }
  const first = byId("notices").firstElementChild;
  first?.scrollIntoView({ block: "center" });
  first?.focus({ preventScroll: true });
}

let shownNotices = "";

function showNotices() {
  const list = notices();
  const shown = JSON.stringify([languageTag(), list]);
  if (shown === shownNotices) return; // an alert that did not change is not announced again
  shownNotices = shown;
  byId("notices").replaceChildren(...list.map(buildNotice));
}

function updateRow(key) {
  updateField(key, form.fields[key], draft.get(key), problems[key]);
}

function showState() {
  showNotices();
  if (form === null) return;
  for (const key of Object.keys(form.fields)) updateRow(key);
  showCounts(form.groups, draft, problems);
  showBar();
}

function showBar() {
  const refused = Object.keys(problems).length;
  const locked = form.lock !== null;
  const summary = byId("summary");
  const parts = [draft.size === 0 ? text("no_edits") : count("edits", draft.size)];
  if (saving) parts.splice(0, 1, text("saving"));
  else if (refused > 0) parts.push(count("refused", refused));
  else if (event?.tone === "ok") parts.splice(0, 1, text("saved_short"));
  else if (draft.size > 0 && event !== null) parts.push(text("not_saved"));
  if (locked) parts.push(text("locked_short"));
  const words = parts.join(" · ");
  if (summary.textContent !== words) summary.textContent = words;
  summary.className = `summary${refused > 0 ? " bad" : draft.size > 0 ? " edited" : ""}`;
  setDisabled(byId("save"), draft.size === 0 || saving || locked);
  setDisabled(byId("discard"), draft.size === 0 || saving);
}

function showFindings(group) {
  const place = byId(`findings-${group}`);
  const trigger = byId(`check-${group}`);
  const state = findings[group];
  const running = state === "running";
  setDisabled(trigger, running);
  trigger.textContent = text(running ? "checking" : `check_${CHECKS[group]}`);
  place.hidden = state === undefined || running;
  place.replaceChildren(...(place.hidden ? [] : buildFindings(CHECKS[group], state.findings, state.subject)));
}

function showStatus() {
  const place = byId("status");
  place.hidden = status === null;
  if (status === null) return;
  place.replaceChildren(
    groupHead("status", button(text("refresh"), readStatus, { id: "refresh" })),
    ...("error" in status
      ? [element("p", { class: "status-failed" }, ...filled(text("status_failed"), { reason: status.error }))]
      : buildStatus(status.facts)),
  );
}

function sectionIds() {
  return [...form.groups.map(({ id }) => id), "status"];
}

function showCurrentSection() {
  if (form !== null) markSection(sectionIds());
}

function showAll() {
  const focused = document.activeElement?.id;
  showStatics(version);
  if (form !== null) {
    const place = byId("file");
    place.hidden = false;
    const canStage = form.stray.length > 0 || Object.values(form.fields).some((field) => "own" in field);
    place.replaceChildren(...buildFile(form, stageInherited, canStage));
    byId("groups").replaceChildren(...form.groups.map((group) => buildGroup(group, form, actions, check)));
    byId("sections").replaceChildren(...buildSections(sectionIds()));
    byId("bar").hidden = false;
    for (const group of Object.keys(CHECKS)) showFindings(group);
    showStatus();
  }
  showState();
  showCurrentSection();
  if (focused && document.activeElement?.id !== focused) byId(focused)?.focus({ preventScroll: true });
}

async function start() {
  showStatics(version);
  languageButtons((name) => {
    chooseLanguage(name);
    showAll();
  });
  byId("save").addEventListener("click", save);
  byId("discard").addEventListener("click", () => draft.size > 0 && !saving && discard());
  byId("groups").addEventListener("submit", (submission) => submission.preventDefault());
  addEventListener("beforeunload", (leaving) => {
    if (draft.size > 0) leaving.preventDefault();
  });
  addEventListener("focus", look);
  addEventListener("scroll", showCurrentSection, { passive: true });
  setInterval(look, LOOK_EVERY_MS);
  try {
    await openSession();
    form = await get("form");
    version = form.version;
    showAll();
    await readStatus();
  } catch (error) {
    failed(error);
  }
}

void start();
