// Keys: what each one does at a step of the answer, and which ones the page names. Pure: events come in, actions go out.

const valueOfDigit = (digit) => {
  const place = digit.codePointAt(0);
  let value = 0;
  while (/\p{Nd}/u.test(String.fromCodePoint(place - value - 1))) value += 1;
  return String(value);
};

// A text with the digits of all scripts as 0 to 9: ٩٠, ९० and ９０ are 90.
export const withPlainDigits = (text) => text.normalize("NFKC").replace(/\p{Nd}/gu, valueOfDigit);

// What a key means, also where the keyboard writes Arabic, Hebrew or Hindi, or an input method is on: there the place of the
// key tells, as if it wrote Latin letters. A row of digits that needs Shift for them gives them without.
export const keyOf = ({ key, code = "", shiftKey = false }) => {
  const isNamed = /^[A-Z]\w+$/.test(key) && !["Process", "Unidentified"].includes(key);
  const plain = isNamed ? key : withPlainDigits(key).toLowerCase();
  if (isNamed || /^[a-z0-9?]$/.test(plain)) return plain;
  const [, digit] = /^(?:Digit|Numpad)([0-9])$/.exec(code) ?? [];
  if (digit && !shiftKey) return digit;
  if (/^(?:[ -~]|\p{Script=Latin})$/u.test(key)) return plain;
  return code === "Slash" && shiftKey ? "?" : /^Key([A-Z])$/.exec(code)?.[1].toLowerCase() ?? plain;
};

// The action of a key at a step, or null: {name, value}. Ctrl and Command leave everything but undo to the browser.
export const actionOf = (event, step) => {
  const key = keyOf(event);
  if (event.ctrlKey || event.metaKey) return key === "z" && !event.shiftKey ? { name: "undo" } : null;
  if (event.altKey) return null;
  if (/^[0-5]$/.test(key)) return { name: "score", value: Number(key) };
  if (step.kind === "compare") {
    const choice = { g: "better", ArrowLeft: "better", s: "same", ArrowDown: "same", b: "worse", ArrowRight: "worse" }[key];
    if (choice) return { name: "compare", value: choice };
  }
  return ACTIONS[key] || null;
};

const ACTIONS = {
  ArrowLeft: { name: "focus", value: -1 }, ArrowRight: { name: "focus", value: 1 },
  ArrowUp: { name: "move", value: -1 }, ArrowDown: { name: "move", value: 1 },
  Enter: { name: "submit" }, Backspace: { name: "undo" },
  d: { name: "discard" }, x: { name: "cannot judge" }, m: { name: "mark" },
  r: { name: "reset" }, i: { name: "guideline" }, e: { name: "unfold" }, "?": { name: "keys" },
};

// The keys of a step with the word for each, for the bar: [keys, word].
export const hintsOf = (step) => ({
  score: [["0–5", "task_key_score"], ["←→", "task_key_focus"], ["d", "task_key_discard"], ["x", "task_key_cannot"]],
  compare: [["g ←", "task_key_first"], ["s ↓", "task_key_same"], ["b →", "task_key_second"]],
  settle: [["r", "task_key_reset"], ["0–5", "task_key_score"], ["↑↓", "task_key_move"]],
  submit: [["Enter", "task_key_submit"], ["↑↓", "task_key_move"], ["⌫", "task_key_undo"]],
})[step.kind];

export const ALL_KEYS = [
  ["0–5", "task_key_score"], ["← →", "task_key_focus"], ["g ←", "task_key_first"], ["s ↓", "task_key_same"], ["b →", "task_key_second"],
  ["↑ ↓", "task_key_move"], ["r", "task_key_reset"], ["Enter", "task_key_submit"], ["⌫  Ctrl Z", "task_key_undo"], ["d", "task_key_discard"],
  ["x", "task_key_cannot"], ["m", "task_key_mark"], ["i", "task_key_guideline"], ["e", "task_key_unfold"], ["?", "task_key_keys"], ["Esc", "task_key_close"],
];

// Whether a key belongs to the element that has the focus: fields take all keys, buttons and links those that press them.
export const belongsTo = (element, key) => {
  if (!element || !element.matches) return false;
  if (element.matches("input, textarea, select, [contenteditable]")) return true;
  return (key === "Enter" || key === " ") && element.matches("button, a, summary");
};

// Whether a key is only still held, and would answer what came up under it: the next task, a dialog, one of its buttons.
// Keys that write, scroll or move go on, and so do those of the browser.
export const isHeld = ({ key, repeat, ctrlKey, metaKey, target }) => {
  if (!repeat || ctrlKey || metaKey || !/^(Enter|Backspace|\S)$/u.test(key)) return false;
  return key === "Enter" ? !target.matches?.("textarea:not([aria-readonly])") : !target.matches?.("input, textarea:not([aria-readonly])");
};
