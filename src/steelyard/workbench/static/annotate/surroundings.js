// What surrounds the card: the bar with the next step, the banner, the guideline, keys, own progress, and empty states.

import { fill, make, showParts, textOf } from "./card.js";
import { drawRanking } from "./ranking.js";

// How high the bar is: scores of long responses stop above it.
if (globalThis.ResizeObserver && globalThis.document?.getElementById("bar")) new ResizeObserver(([{ target }]) => document.documentElement.style.setProperty("--bar", `${target.offsetHeight}px`)).observe(document.getElementById("bar"));

const byId = (id) => document.getElementById(id);

// Draw the bar: what a flow says of the present step, and whether there is something to undo or to submit.
export const drawBar = ({ kind, text, hints, choices, ranking, canReset, canUndo, canSubmit }, words) => {
  byId("bar").dataset.step = kind;
  if (byId("step").textContent !== text) byId("step").textContent = text;
  byId("hints").replaceChildren(...hints.map(([keys, word]) => make("span", {}, make("kbd", {}, keys), ` ${word}`)));
  byId("choices").hidden = !choices.length;
  byId("choices").replaceChildren(...choices.map(({ label, key, isPressed, run }) => make("button", { type: "button", "aria-pressed": isPressed === null ? null : String(isPressed), onclick: run }, label, " ", make("kbd", { "aria-hidden": "true" }, key))));
  byId("ranking-row").hidden = !ranking?.tiers.length;
  if (ranking) drawRanking(byId("ranking"), ranking.tiers, { ...ranking, words });
  const said = ranking?.tiers.length ? `${words.task_ranking_is} ${ranking.tiers.map((tier) => tier.join(" = ")).join(" > ")}` : "";
  if (byId("ranking-said").textContent !== said) byId("ranking-said").textContent = said;
  byId("reset").hidden = !canReset;
  byId("undo").disabled = !canUndo;
  byId("submit").disabled = !canSubmit;
};

const REFUSALS = { "too late": "task_too_late", unreadable: "task_unreadable", elsewhere: "task_twice" };
export const drawBanner = (place, { waiting, problem, refused, isKept = true }, { words, retry, forgive }) => {
  const parts = [];
  const button = (word, run) => Object.assign(make("button", { type: "button", class: "quiet" }, word), { onclick: run });
  const text = { "logged out": words.task_logged_out, "no room": words.task_no_room }[problem] || words.task_offline;
  // Where neither storage took it, it goes with the page: that comes first, whatever the problem is.
  const said = make("span", {}, fill(isKept ? text : words.task_not_kept, { number: waiting }));
  // The login opens beside a page that must stay open.
  if (problem === "logged out") parts.push(said, make("a", { href: "/login", target: isKept ? null : "_blank" }, words.task_log_in));
  else if (problem && waiting) parts.push(said, button(words.task_retry, retry));
  for (const { reason } of refused) parts.push(make("span", {}, REFUSALS[reason] ? words[REFUSALS[reason]] : fill(words.task_refused, { reason })));
  if (refused.length) parts.push(button(words.task_understood, forgive));
  place.hidden = !parts.length;
  place.classList.toggle("loss", !isKept);
  showParts(place, parts);
};

// Say where what was entered is: on its way, at the workbench since a time, or on this computer alone.
export const drawSaving = (place, { isWaiting, problem, isKept, at }, words) => {
  const text = problem ? isKept ? words.task_kept : words.task_only_here : isWaiting ? words.task_saving : at ? fill(words.task_saved, { time: at.toLocaleTimeString(document.documentElement.lang, { hour: "2-digit", minute: "2-digit" }) }) : "";
  if (place.textContent !== text) place.textContent = text;
  place.classList.toggle("kept", Boolean(problem));
};

export const drawGuideline = (place, guideline, words) => {
  if (place.dataset.version === String(guideline?.html)) return;
  place.dataset.version = String(guideline?.html);
  if (!guideline) { place.replaceChildren(make("p", { class: "muted" }, words.task_no_guideline)); return; }
  place.replaceChildren(textOf(guideline.html, null), make("p", { class: "muted" }, fill(words.task_guideline_version, { number: guideline.version })));
};

// Below the guideline: the scale of triples, or the questions of any other kind of task with what may be chosen.
export const drawAsked = (panel, questions) => {
  const choices = (all) => all.length ? make("span", { class: "options" }, all.map(({ label }) => label).join(" · ")) : null;
  const row = ({ label, ask, choices: all, severities }) => make("div", {}, make("dd", {}, make("b", {}, label), ` ${ask}`, choices(all), choices(severities)));
  panel.querySelector("#triple-scale").hidden = questions.length > 0;
  panel.querySelector("#asked").hidden = !questions.length;
  panel.querySelector("#asked dl").replaceChildren(...questions.filter(({ choices }) => choices.length <= 12).map(row), ...questions.filter(({ choices }) => choices.length > 12).map((each) => row({ ...each, choices: [], severities: [] })));
  panel.querySelector("#dimensions").hidden = questions.length > 0 && !questions.some(({ input }) => input === "comparison");
};

export const drawKeys = (dialog, keys, words, end) => {
  const rows = keys.map(([key, word]) => make("div", {}, make("dt", {}, ...key.split("  ").map((each) => make("kbd", {}, each))), make("dd", {}, words[word])));
  dialog.replaceChildren(make("h2", {}, words.task_key_keys), make("dl", { class: "keys" }, ...rows), end);
};

// Say something that the person has to know before the next card takes the keys. `onNext` hears when it was read.
export const READING_MS = 700;
export const showNotice = (dialog, text, words, onNext) => {
  const next = make("button", { type: "button", class: "main", disabled: true, onclick: () => dialog.close() }, words.task_next, " ", make("kbd", { "aria-hidden": "true" }, "Enter"));
  dialog.onkeydown = null;
  dialog.replaceChildren(make("p", { role: "alert" }, text), next);
  dialog.addEventListener("close", onNext, { once: true });
  if (!dialog.open) dialog.showModal();
  // A key that was meant for the task does not put it away.
  window.setTimeout(() => { next.disabled = false; next.focus(); }, READING_MS);
};

const linkToAlign = (number, words) => number ? [make("a", { href: "/align" }, fill(words.task_to_align, { number }))] : [];
const percent = (share) => `${Math.round(100 * share)}%`;
export const drawProgress = (place, { today, total, agreement, to_align: toAlign }, words) => {
  Object.assign(place.dataset, { today, toAlign });
  const figure = (number, text) => { const [before, behind] = text.split("{number}"); return make("span", {}, before, make("b", {}, String(number)), behind); };
  showParts(place, [figure(today, words.task_today), figure(total, words.task_total), ...(agreement === null ? [] : [figure(percent(agreement), words.task_agreement)]), ...linkToAlign(toAlign, words)]);
};

const EMPTY = { loading: "task_loading", offline: "task_empty_offline", "no room": "task_empty_no_room", "logged out": "task_empty_logged_out", "no tasks": "task_empty_none", "all taken": "task_empty_taken", "other window": "task_empty_window", "other skills": "task_empty_skills", "all had": "task_empty_had", paused: "task_empty_paused", "day full": "task_empty_day", record: "task_empty_record" };
export const drawEmpty = (place, reason, { words, retry, others }) => {
  const today = Number(byId("own-progress").dataset.today || 0);
  const toAlign = Number(byId("own-progress").dataset.toAlign || 0);
  const isDone = today > 0 && ["all taken", "other skills", "all had", "paused", "day full"].includes(reason);
  const again = reason === "logged out" ? make("a", { href: "/login" }, words.task_log_in) : make("button", { type: "button", onclick: retry }, words.task_retry);
  showParts(place, [make("h1", {}, !isDone ? words.task_nothing : toAlign ? words.task_annotated : words.task_done), ...linkToAlign(toAlign, words).map((link) => make("p", {}, link)), make("p", {}, words[EMPTY[reason] || "task_empty_taken"]), ...(reason === "loading" ? [] : [make("p", {}, again), ...others])]);
};
