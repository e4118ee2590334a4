// The questions of a task: which of them are open, and what an entry makes of an answer. The rules are those of
// annotation/questions.py, and a test runs both over the same answers. All functions are pure.

import { withPlainDigits } from "./keys.js";

export const applies = (question, answer) => {
  if (question.responses.some((response) => response in answer.discarded)) return false;
  if (question.exception !== null && answer.entries[question.exception[0]] === question.exception[1]) return false;
  return question.condition === null || answer.entries[question.condition[0]] === question.condition[1];
};

export const isAnswered = (question, answer) => {
  const ranked = answer.ranking.flat();
  if (question.input === "comparison") return question.responses.every((response) => ranked.includes(response));
  if (question.input === "number") return question.responses[0] in answer.scores;
  return question.input === "marks" || Boolean((answer.entries[question.name] || "").trim());
};

export const openQuestions = (answer, questions) => answer.cannot_judge !== null ? [] : questions.filter((question) => applies(question, answer) && !isAnswered(question, answer));

const ORDERS = { first: ([first, second]) => [[first], [second]], same: (both) => [[...both]], second: ([first, second]) => [[second], [first]] };

// What an answer says to a question, as a value of its choices, a number, or a text; null where it says nothing.
export const valueOf = (question, answer) => {
  if (question.input === "number") return answer.scores[question.responses[0]] ?? null;
  if (question.input !== "comparison") return answer.entries[question.name] ?? null;
  return Object.keys(ORDERS).find((order) => JSON.stringify(ORDERS[order](question.responses)) === JSON.stringify(answer.ranking)) || null;
};

const without = (table, keys) => Object.fromEntries(Object.entries(table).filter(([key]) => !keys.includes(key)));

// An answer with one more entry. Entries of questions that do not apply any more are dropped.
export const entered = (answer, question, value, questions) => {
  let changed = { ...answer, cannot_judge: null };
  if (question.input === "comparison") changed.ranking = ORDERS[value](question.responses);
  else if (question.input === "number") changed.scores = value === null ? without(answer.scores, question.responses) : { ...answer.scores, [question.responses[0]]: value };
  else changed.entries = { ...answer.entries, [question.name]: value };
  const idle = questions.filter((each) => !applies(each, changed)).map(({ name }) => name);
  changed = { ...changed, entries: without(changed.entries, idle) };
  return changed;
};

// The whole number that a text writes; null where it writes none within the range, which then is no entry any more.
export const numberIn = (text, [low, high]) => {
  const digits = withPlainDigits(text).trim(), number = Number(digits);
  return /^\d+$/.test(digits) && number >= low && number <= high ? number : null;
};

// A digit behind the number so far; a number on its own where both together are too large.
export const typed = (number, digit, [low, high]) => {
  const longer = number === null ? digit : 10 * number + digit;
  return Math.max(low, longer > high ? digit : longer);
};

export const takenOut = (answer, response, reason) => ({ ...answer, cannot_judge: null, ranking: [], scores: without(answer.scores, [response]), discarded: { ...answer.discarded, [response]: reason } });

// The question that keys go to: the chosen one, else the first that is open, else the last that applies.
export const currentQuestion = (answer, questions, active) => {
  const live = questions.filter((question) => applies(question, answer) && question.input !== "marks");
  return live.find((question) => questions.indexOf(question) === active) || openQuestions(answer, questions)[0] || live.at(-1) || null;
};

// The number of the question before or after the current one.
export const neighbour = (answer, questions, active, step) => {
  const live = questions.filter((question) => applies(question, answer) && question.input !== "marks");
  const at = live.indexOf(currentQuestion(answer, questions, active));
  return at < 0 ? active : questions.indexOf(live[Math.max(0, Math.min(live.length - 1, at + step))]);
};

const COMPARISONS = { g: "first", ArrowLeft: "first", s: "same", ArrowDown: "same", b: "second", ArrowRight: "second" };

// What a key means to a question: {name: "enter", value}, {name: "digit", value}, {name: "open"}, or null.
export const meaningOf = (key, question) => {
  if (!question) return null;
  if (question.input === "comparison") return key in COMPARISONS ? { name: "enter", value: COMPARISONS[key] } : null;
  if (question.input === "number") return /^[0-9]$/.test(key) ? { name: "digit", value: Number(key) } : null;
  const choice = question.choices.find((each) => each.key === key);
  if (choice) return { name: "enter", value: choice.value };
  return ["Enter", "c"].includes(key) && (question.input === "text" || question.choices.some((each) => each.key === null)) ? { name: "open" } : null;
};
