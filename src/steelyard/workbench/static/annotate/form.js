// The flow of a task that is a list of questions: one after the other by keys, all of them in sight, any of them by mouse.

import { fill, make } from "./card.js";
import { applies, currentQuestion, entered, isAnswered, meaningOf, neighbour, numberIn, openQuestions, takenOut, typed, valueOf } from "./entries.js";
import { openChoices } from "./choosing.js";
import { keyOf } from "./keys.js";
import { openReasons } from "./marking.js";

const MOST_BUTTONS = 10;
const COMPARISON = [["first", "g ←"], ["same", "s ↓"], ["second", "b →"]];

const KEYS = { Enter: "submit", Backspace: "undo", d: "discard", x: "cannot judge", m: "mark", i: "guideline", e: "unfold", "?": "keys" };
const current = (card, { answer, active }) => currentQuestion(answer, card.task.questions, active);

// The choices of a question as buttons: {value, label, key}; none where there are too many, or it is a text or a number.
const choicesOf = (question, words) => {
  if (question.input !== "comparison") return question.choices.length > MOST_BUTTONS ? [] : question.choices;
  const [first, second] = question.responses.map((id) => fill(words.task_better, { id }));
  const labels = { first, same: words.task_key_same, second };
  return COMPARISON.map(([value, key]) => ({ value, label: labels[value], key }));
};

const actionOf = (event, card, state) => {
  const key = keyOf(event);
  if (event.ctrlKey || event.metaKey) return key === "z" && !event.shiftKey ? { name: "undo" } : null;
  if (event.altKey || !card) return null;
  const question = current(card, state), meaning = meaningOf(key, question);
  // Enter at a long list opens it only while the question is open: afterwards it submits.
  if (meaning && !(key === "Enter" && isAnswered(question, state.answer))) return meaning;
  if (key === "ArrowUp" || key === "ArrowDown") return { name: "step", value: key === "ArrowUp" ? -1 : 1 };
  return key in KEYS ? { name: KEYS[key] } : null;
};

const enter = ({ card, state, change }, { value, question = current(card, state), merge = null }) => {
  change(entered(state.answer, question, value, card.task.questions), { active: merge === null ? null : state.active, merge });
};

const ACTIONS = {
  enter,
  digit: (context, { value, question = current(context.card, context.state) }) => enter(context, { question, value: typed(valueOf(question, context.state.answer), value, question.range) }),
  open: (context, { question = current(context.card, context.state) }) => {
    if (question.input !== "choice") { context.card.panel.fields.get(question)?.focus(); return; }
    openChoices(context.dialog, question.ask, question.choices, { words: context.words, value: valueOf(question, context.state.answer), onChoice: (value) => enter(context, { value, question }) });
  },
  step: ({ card, state, focus }, { value }) => focus(neighbour(state.answer, card.task.questions, state.active, value)),
};

const textOf = (card, state, words) => {
  const { answer } = state, open = openQuestions(answer, card.task.questions);
  if (answer.cannot_judge !== null) return words.task_step_cannot;
  if (open.length) return current(card, state).ask;
  const marks = card.task.questions.find((question) => question.input === "marks");
  return marks && !Object.keys(answer.spans).length ? `${marks.ask} ${words.task_step_no_marks}` : words.task_step_complete;
};

const hintsOf = (card, state, words) => {
  const question = current(card, state), isOpen = openQuestions(state.answer, card.task.questions).length > 0;
  const keys = !question ? [] : question.input === "comparison" ? [["g ←", words.task_key_first], ["s ↓", words.task_key_same], ["b →", words.task_key_second]]
    : question.input === "number" ? [["0–9", question.label]]
    : choicesOf(question, words).length ? choicesOf(question, words).map(({ key, label }) => [key, label]) : question.input === "choice" ? [["c", question.label]] : [["Enter", question.label], ["Esc", words.task_key_leave]];
  const marks = card.task.questions.some(({ input }) => input === "marks") ? [["m", words.task_key_mark]] : [];
  return [...keys, ...marks, ...(isOpen ? [["x", words.task_key_cannot]] : [["Enter", words.task_key_submit], ["⌫", words.task_key_undo]])];
};

const bar = (context) => {
  const { card, state, words, act } = context, question = current(card, state);
  const choices = question ? choicesOf(question, words) : [];
  return {
    kind: openQuestions(state.answer, card.task.questions).length ? "compare" : "submit", text: textOf(card, state, words), hints: hintsOf(card, state, words), canReset: false, ranking: null,
    choices: choices.length > 4 ? [] : choices.map(({ value, label, key }) => ({ label, key: key[0], isPressed: valueOf(question, state.answer) === value, run: () => act({ name: "enter", value, question }) })),
  };
};

const rowOf = (question, { words, act, task }) => {
  const run = (value) => act({ name: "enter", value, question });
  const choices = choicesOf(question, words);
  const legend = make("span", { class: "question-label" }, question.ask);
  if (choices.length) {
    const buttons = choices.map(({ value, label, key }) => make("button", { type: "button", "aria-pressed": "false", onclick: () => run(value) }, label, " ", make("kbd", { "aria-hidden": "true" }, key)));
    return { node: make("div", { class: "question", role: "group", "aria-label": question.label }, legend, make("div", { class: "choices" }, ...buttons)), field: buttons[0], show: (answer) => buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(choices[place].value === valueOf(question, answer)))) };
  }
  if (question.input === "choice") {
    const chosen = make("span", {}), button = make("button", { type: "button", "aria-haspopup": "dialog", onclick: () => act({ name: "open", question }) }, chosen, " ", make("kbd", { "aria-hidden": "true" }, "c"));
    const show = (answer) => {
      const value = valueOf(question, answer);
      button.setAttribute("aria-pressed", String(value !== null));
      chosen.textContent = question.choices.find((each) => each.value === value)?.label ?? value ?? words.task_choose;
    };
    return { node: make("div", { class: "question", role: "group", "aria-label": question.label }, legend, make("div", { class: "choices" }, button)), field: button, show };
  }
  const field = question.input === "number" ? make("input", { type: "text", inputmode: "numeric", "aria-label": question.label, size: "6" })
    : make("textarea", { rows: "6", dir: "auto", placeholder: task.prompt_text, "aria-label": question.label });
  if (question.input === "number") field.addEventListener("change", () => run(numberIn(field.value, question.range)));
  else {
    // The text begins as the prompt: what is revised is changed, not written anew.
    field.addEventListener("focus", () => { if (!field.value) { field.value = task.prompt_text; act({ name: "enter", value: field.value, question, merge: question.name }); } });
    field.addEventListener("input", () => act({ name: "enter", value: field.value, question, merge: question.name }));
  }
  field.addEventListener("keydown", (event) => { if (event.key === "Escape" || (event.key === "Enter" && (event.ctrlKey || question.input === "number"))) { event.preventDefault(); event.stopPropagation(); field.blur(); } });
  const show = (answer) => { const text = String(valueOf(question, answer) ?? ""); if (field.value !== text) field.value = text; };
  return { node: make("label", { class: "question" }, legend, field), field, show };
};

// The questions in sight, below what is shown; none where the bar has the only one.
const panel = (task, tools) => {
  const asked = task.questions.filter(({ input }) => input !== "marks");
  const isInBar = asked.length === 0 || (asked.length === 1 && asked[0].input === "comparison");
  const rows = new Map(asked.map((question) => [question, rowOf(question, { ...tools, task })]));
  const update = (state) => {
    const question = currentQuestion(state.answer, task.questions, state.active);
    for (const [each, row] of rows) {
      row.node.hidden = !applies(each, state.answer);
      row.node.classList.toggle("current", each === question);
      row.show(state.answer);
    }
  };
  return { node: isInBar ? null : make("section", { class: "card questions", "aria-label": tools.words.task_questions }, ...[...rows.values()].map(({ node }) => node)), fields: new Map([...rows].map(([question, { field }]) => [question, field])), update };
};

export const form = {
  bar, panel, actionOf, actions: ACTIONS,
  allKeys: (card) => [...card.task.questions.flatMap((question) => question.input === "comparison" ? [["g ←", "task_key_first"], ["s ↓", "task_key_same"], ["b →", "task_key_second"]] : []), ["↑ ↓", "task_key_question"], ["Enter", "task_key_submit"], ["⌫  Ctrl Z", "task_key_undo"], ...(card.task.has_discards ? [["d", "task_key_discard"]] : []), ["x", "task_key_cannot"], ...(card.shown.length ? [["m", "task_key_mark"]] : []), ["i", "task_key_guideline"], ["e", "task_key_unfold"], ["?", "task_key_keys"], ["Esc", "task_key_close"]],
  controls: () => ({ nodes: [], update: () => {} }),
  follow: (card, answer, { active }) => ({ answer, active, isByHand: false }),
  start: (card, answer) => ({ answer, active: null, isByHand: false }),
  isComplete: (card, { answer }) => openQuestions(answer, card.task.questions).length === 0,
  lit: () => ({ asked: [], active: null }),
  discard: ({ state, change }, response, reason) => change(takenOut(state.answer, response, reason), { active: null }),
  // The response that a key is about: the only one, or the one that is chosen.
  target: ({ card, dialog, words }, { response }, then) => {
    if (response || card.shown.length < 2) { if (response || card.shown.length) then(response || card.shown[0]); return; }
    openReasons(dialog, words.task_which_response, card.shown.map((value) => ({ value, label: fill(words.task_response, { id: value }) })), { words, onChoice: then });
  },
  arrive: () => {},
  activate: () => {},
};
