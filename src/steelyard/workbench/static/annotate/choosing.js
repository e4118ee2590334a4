// Choosing from a list that is too long for keys of its own, such as the categories: typed letters leave what has them.

import { make } from "./card.js";
import { closing } from "./marking.js";

// The choices whose label or value has every word of a text, in any case. Pure.
export const matching = (choices, text) => {
  const parts = text.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  return choices.filter(({ value, label }) => parts.every((part) => `${label} ${value}`.toLocaleLowerCase().includes(part)));
};

// Open the list in the dialog: typing narrows it, ↑ and ↓ go through it, Enter or a click takes one. `value` is what is
// chosen already; `onChoice(value)` hears of another one.
export const openChoices = (dialog, title, choices, { words, value, onChoice }) => {
  let shown = choices, at = Math.max(0, choices.findIndex((each) => each.value === value));
  const field = make("input", { type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", "aria-expanded": "true", "aria-controls": "options", "aria-label": title, placeholder: words.task_choice_find });
  const list = make("ul", { id: "options", class: "choice-list", role: "listbox", "aria-label": title });
  const none = make("p", { class: "muted", role: "status" });
  const take = (choice) => { dialog.close(); onChoice(choice.value); };
  const light = () => {
    [...list.children].forEach((option, place) => option.setAttribute("aria-selected", String(place === at)));
    list.children[at]?.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", list.children[at]?.id ?? "");
  };
  const draw = () => {
    list.replaceChildren(...shown.map((choice, place) => make("li", { id: `option-${place}`, role: "option", class: choice.value.includes("/") ? "below" : "main-choice", onclick: () => take(choice) }, choice.label)));
    none.textContent = shown.length ? "" : words.task_choice_none;
    light();
  };
  field.addEventListener("input", () => { shown = matching(choices, field.value); at = 0; draw(); });
  dialog.onkeydown = (event) => {
    if (event.isComposing || !dialog.open) return;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (step && shown.length) { event.preventDefault(); at = Math.min(shown.length - 1, Math.max(0, at + step)); light(); }
    if (event.key === "Enter" && event.target === field) { event.preventDefault(); if (shown[at]) take(shown[at]); }
  };
  dialog.replaceChildren(make("h2", {}, title), field, make("div", { class: "choice-box" }, list, none), closing(dialog, words));
  dialog.showModal();
  // A finger sees the list, not a keyboard over it.
  if (window.matchMedia("(pointer: coarse)").matches) dialog.focus(); else field.focus();
  draw();
};
