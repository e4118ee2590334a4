// What surrounds the card: the bar with the next step, the banner, the guideline, keys, own progress, and empty states.

import { rankedRelation } from "./answer.js";
import { fill, make } from "./card.js";
import { hintsOf } from "./keys.js";
import { drawRanking } from "./ranking.js";

const SIGNS = { better: ">", same: "=", worse: "<" };
const byId = (id) => document.getElementById(id);

// A contradiction in words.
export const problemInWords = ({ problem, responses }, answer, words) => {
  const [first, second] = responses;
  if (problem === "circle") return fill(words.task_problem_circle, { responses: responses.join(" · ") });
  const ranking = SIGNS[rankedRelation(answer, first, second)];
  if (problem === "comparison against ranking") {
    const entry = answer.comparisons.find((each) => responses.includes(each.first) && responses.includes(each.second));
    return fill(words.task_problem_comparison, { compared: `${entry.first} ${SIGNS[entry.choice]} ${entry.second}`, ranked: `${first} ${ranking} ${second}` });
  }
  return fill(words.task_problem_score, { first, second, x: answer.scores[first], y: answer.scores[second], ranked: `${first} ${ranking} ${second}` });
};

const stepInWords = (step, { answer, active }, words) => {
  if (step.kind === "score") return fill(words.task_step_score, { id: active in answer.scores || active === null ? step.responses[0] : active });
  if (step.kind === "compare") return fill(words.task_step_compare, { first: step.responses[0], second: step.responses[1] });
  if (step.kind === "settle") return problemInWords(step, answer, words);
  return answer.cannot_judge === null ? words.task_step_submit : words.task_step_cannot;
};

export const drawBar = (state, { words, act, onRank, onMove }) => {
  const { step, answer } = state, bar = byId("bar");
  bar.dataset.step = step.kind;
  const text = stepInWords(step, state, words);
  if (byId("step").textContent !== text) byId("step").textContent = text;
  byId("hints").replaceChildren(...hintsOf(step).map(([keys, word]) => make("span", {}, make("kbd", {}, keys), ` ${words[word]}`)));
  const choices = byId("choices");
  choices.hidden = step.kind !== "compare";
  if (step.kind === "compare") {
    const [first, second] = step.responses;
    const choice = (value, key, label) => make("button", { type: "button", onclick: () => act({ name: "compare", value }) }, label, " ", make("kbd", { "aria-hidden": "true" }, key));
    choices.replaceChildren(choice("better", "g", fill(words.task_better, { id: first })), choice("same", "s", words.task_key_same), choice("worse", "b", fill(words.task_better, { id: second })));
  }
  byId("ranking-row").hidden = answer.ranking.length === 0;
  drawRanking(byId("ranking"), answer.ranking, { active: state.active, scores: answer.scores, words, onRank, onMove });
  byId("reset").hidden = step.kind !== "settle";
  byId("undo").disabled = !state.canUndo;
  byId("submit").disabled = step.kind !== "submit";
};

export const drawBanner = (place, { waiting, problem, refused }, { words, retry, forgive }) => {
  const parts = [];
  const button = (word, run) => make("button", { type: "button", class: "quiet", onclick: run }, word);
  if (problem === "logged out") parts.push(make("span", {}, fill(words.task_logged_out, { number: waiting })), make("a", { href: "/login" }, words.task_log_in));
  else if (problem && waiting) parts.push(make("span", {}, fill(words.task_offline, { number: waiting })), button(words.task_retry, retry));
  for (const { reason } of refused) parts.push(make("span", {}, reason === "too late" ? words.task_too_late : fill(words.task_refused, { reason })));
  if (refused.length) parts.push(button(words.task_understood, forgive));
  place.hidden = !parts.length;
  place.replaceChildren(...parts);
};

export const drawGuideline = (place, guideline, words) => {
  if (place.dataset.version === String(guideline?.html)) return;
  place.dataset.version = String(guideline?.html);
  if (!guideline) { place.replaceChildren(make("p", { class: "muted" }, words.task_no_guideline)); return; }
  const text = make("div", { class: "text", dir: "auto" });
  // HTML from the workbench's own renderer, as that of the responses.
  text.innerHTML = guideline.html;
  place.replaceChildren(text, make("p", { class: "muted" }, fill(words.task_guideline_version, { number: guideline.version })));
};

export const drawKeys = (dialog, keys, words, end) => {
  const rows = keys.map(([key, word]) => make("div", {}, make("dt", {}, ...key.split("  ").map((each) => make("kbd", {}, each))), make("dd", {}, words[word])));
  dialog.replaceChildren(make("h2", {}, words.task_key_keys), make("dl", { class: "keys" }, ...rows), end);
};

const percent = (share) => `${Math.round(100 * share)} %`;
export const drawProgress = (place, { today, total, agreement }, words) => {
  place.dataset.today = today;
  const figure = (number, word) => make("span", {}, make("b", {}, String(number)), ` ${word}`);
  place.replaceChildren(figure(today, words.task_today), figure(total, words.task_total), ...(agreement === null ? [] : [figure(percent(agreement), words.task_agreement)]));
};

const EMPTY = { loading: "task_loading", offline: "task_empty_offline", "logged out": "task_empty_logged_out", "no tasks": "task_empty_none", "all taken": "task_empty_taken", "other skills": "task_empty_skills", "all had": "task_empty_had" };
export const drawEmpty = (place, reason, { words, retry }) => {
  const today = Number(byId("own-progress").dataset.today || 0);
  const isDone = today > 0 && ["all taken", "other skills", "all had"].includes(reason);
  const again = reason === "logged out" ? make("a", { href: "/login" }, words.task_log_in) : make("button", { type: "button", onclick: retry }, words.task_retry);
  place.replaceChildren(make("h1", {}, isDone ? words.task_done : words.task_nothing), make("p", {}, words[EMPTY[reason] || "task_empty_taken"]), ...(reason === "loading" ? [] : [again]));
};
