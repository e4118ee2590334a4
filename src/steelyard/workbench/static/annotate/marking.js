// Marking a problem in the raw text of a response. Spans are counted in Unicode code points of that text.

import { codeOf, fill, lettersOf, make } from "./card.js";
import { keyOf } from "./keys.js";

// A field turns every line break into one character. Return where an offset of the field is in the raw text (UTF-16).
export const rawOffset = (raw, offset) => {
  let place = 0;
  for (let passed = 0; passed < offset && place < raw.length; passed += 1) place += raw[place] === "\r" && raw[place + 1] === "\n" ? 2 : 1;
  return place;
};
// Return a UTF-16 offset in code points; within a letter of two units it is that letter's start.
export const codePoints = (raw, offset) => [...raw.slice(0, offset)].length - (/[\ud800-\udbff]$/.test(raw.slice(0, offset)) && /^[\udc00-\udfff]/.test(raw.slice(offset)) ? 1 : 0);

// Let a field have a caret and a selection, and stay as it is. What an input method writes can only be taken back.
const keepText = (field) => {
  const { value } = field;
  let selected = [0, 0];
  field.addEventListener("beforeinput", (event) => event.preventDefault());
  field.addEventListener("compositionstart", () => { selected = [field.selectionStart, field.selectionEnd]; });
  field.addEventListener("compositionend", () => { field.value = value; field.setSelectionRange(...selected); });
};

// Open the dialog on a response. `problems` are the kinds to choose from; with `severities` one of them is chosen after
// the kind, in place of a remark. `onSpan([start, end, kind, remark])` hears of a mark.
export const openMarking = (dialog, response, { words, problems, severities, onSpan }) => {
  // Not `readonly`: Chromium gives such a field no caret, and its words cannot be selected by keys.
  const field = make("textarea", { "aria-readonly": "true", inputmode: "none", spellcheck: "false", dir: "auto", rows: "12", "aria-label": fill(words.task_response, { id: response.id }), class: "raw" });
  // A field cannot show them by their codes, and would let them turn what is selected: a sign as long stands for each.
  const codes = new Set();
  field.value = lettersOf(response, (letter) => { codes.add(codeOf(letter)); return "\ufffd".repeat(letter.length); }).join("");
  keepText(field);
  const hidden = codes.size ? make("p", { class: "muted" }, fill(words.task_mark_hidden, { codes: [...codes].join(" ") })) : "";
  const remark = make("input", { type: "text", maxlength: "500", placeholder: words.task_remark, "aria-label": words.task_remark });
  const note = make("p", { class: "muted", role: "status" }, words.task_mark_how);
  const choose = (kind) => {
    const [start, end] = [field.selectionStart, field.selectionEnd].map((offset) => codePoints(response.raw, rawOffset(response.raw, offset)));
    if (start >= end) {
      note.textContent = words.task_mark_select;
      field.focus();
      return;
    }
    dialog.close();
    if (severities.length) openReasons(dialog, words.task_severity, severities, { words, onChoice: (severity) => onSpan([start, end, kind, severity]) });
    else onSpan([start, end, kind, remark.value.trim() || null]);
  };
  const kinds = problems.map(({ value, label }, number) => make("button", { type: "button", onclick: () => choose(value) }, label, " ", make("kbd", { "aria-hidden": "true" }, String(number + 1))));
  field.addEventListener("keydown", (event) => {
    const kind = problems[Number(keyOf(event)) - 1];
    if (!dialog.open || !kind || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    choose(kind.value);
  });
  // Each dialog sets the keys anew: the event of closing may come after the next one is open.
  dialog.onkeydown = null;
  dialog.replaceChildren(make("h2", {}, fill(words.task_mark_title, { id: response.id })), note, field, hidden, make("div", { class: "choices" }, ...kinds), severities.length ? "" : remark, closing(dialog, words));
  dialog.showModal();
  field.focus();
  field.setSelectionRange(0, 0);
};

export const closing = (dialog, words) => make("p", { class: "closing" }, make("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, words.task_key_close, " ", make("kbd", { "aria-hidden": "true" }, "Esc")));

// Ask for one of several reasons, by digit or click, under a note on what follows. `onChoice(value)` hears of it.
export const openReasons = (dialog, title, reasons, { words, onChoice, note = "" }) => {
  const choose = (value) => { dialog.close(); onChoice(value); };
  const buttons = reasons.map(({ value, label }, number) => make("button", { type: "button", onclick: () => choose(value) }, label, " ", make("kbd", { "aria-hidden": "true" }, String(number + 1))));
  dialog.onkeydown = (event) => {
    // What was in a dialog has the focus until the next frame: a fast key after the choice is no second choice.
    const reason = reasons[Number(keyOf(event)) - 1];
    if (reason && dialog.open && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.matches("input, textarea")) { event.preventDefault(); choose(reason.value); }
  };
  dialog.replaceChildren(make("h2", {}, title), make("div", { class: "choices" }, ...buttons), note && make("p", { class: "muted" }, note), closing(dialog, words));
  dialog.showModal();
};
