// A round of qualification on the annotator's page: an answer is sent at once, and what was right in it is shown.

import { fill, make } from "./card.js";

const percent = (share) => Math.round(100 * share);

// The result of a round in a sentence, with its interval where there is one.
export const resultOf = ({ accuracy, low, high, least_accuracy }, words) => {
  const values = { value: percent(accuracy), low: low === null ? "" : percent(low), high: high === null ? "" : percent(high), least: percent(least_accuracy) };
  return fill(low === null ? words.task_round_no_interval : words.task_round_result, values);
};

// Show the points of the reference beside the answer, and the reason. `onNext` hears when the person goes on.
export const showFeedback = (dialog, { points, num_same, reason, round }, words, onNext) => {
  const title = num_same === points.length ? words.task_right : num_same ? fill(words.task_partly_right, { same: num_same, all: points.length }) : words.task_wrong;
  const cell = (text, name = "") => make("td", { dir: "auto", class: name }, text);
  const rows = points.map(({ label, answer, reference, is_same }) => make("tr", { class: is_same ? "same" : "differs" }, make("th", { scope: "row" }, label), cell(`${is_same ? "✓" : "✗"} ${answer}`), cell(reference)));
  const head = make("thead", {}, make("tr", {}, make("td", {}), make("th", { scope: "col" }, words.task_yours), make("th", { scope: "col" }, words.task_reference)));
  let isRead = false;
  // At once by the button, whose key is for the next card from then on; by Escape when the dialog has closed.
  const goOn = () => { if (!isRead) { isRead = true; dialog.close(); onNext(); } };
  const next = make("button", { type: "button", class: "main", onclick: goOn }, words.task_next, " ", make("kbd", { "aria-hidden": "true" }, "Enter"));
  const why = reason ? [make("h3", {}, words.task_reason), make("p", { class: "reason", dir: "auto" }, reason)] : [];
  dialog.onkeydown = null;
  dialog.replaceChildren(make("h2", {}, title), make("table", { class: "feedback" }, head, make("tbody", {}, ...rows)), ...why, make("p", { class: "muted" }, `${round.num_done} ${fill(words.task_qualification_of, { number: round.num_tasks })}`), next);
  dialog.addEventListener("close", goOn, { once: true });
  dialog.showModal();
  next.focus();
};

// The row above the card: how many tasks of the round are done.
export const drawRound = (place, round, words) => place.replaceChildren(make("span", {}, make("b", {}, String(round.num_done)), ` ${fill(words.task_qualification_of, { number: round.num_tasks })}`));

// What stands in place of a card where the round has ended, or cannot begin.
// `others` is a link to other projects, where there are any.
export const drawEnd = (place, round, words, others) => {
  const isPassed = ["passed", "not needed"].includes(round.standing);
  if (round.standing === "no tasks") { place.replaceChildren(make("h1", {}, words.task_nothing), make("p", {}, words.task_empty_unprepared), ...others); return; }
  const result = round.accuracy === null ? [] : [make("p", {}, resultOf(round, words))];
  const begin = make("button", { type: "button", class: "main", onclick: () => window.location.reload() }, words.task_begin);
  place.replaceChildren(make("h1", {}, isPassed ? words.task_passed : words.task_failed), ...result, ...(isPassed ? [begin] : [make("p", {}, words.task_failed_why), ...others]));
};
