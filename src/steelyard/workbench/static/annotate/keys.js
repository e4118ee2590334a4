// Keys: what each one does at a step of the answer, and which ones the page names. Pure: events come in, actions go out.

// The action of a key at a step, or null: {name, value}. Ctrl and Command leave everything but undo to the browser.
export const actionOf = (event, step) => {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
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
  return key === "Enter" ? !target.matches?.("textarea:not([readonly])") : !target.matches?.("input, textarea:not([readonly])");
};
