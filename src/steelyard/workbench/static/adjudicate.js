// Forms of alignment and review show the questions that are to be answered: some depend on an entry, some are about a
// response that is discarded. Without this script all are shown, and the workbench leaves out what does not apply.

const enteredIn = (form, name) => form.querySelector(`[data-question="${name}"] :is(select, input, textarea)`)?.value;
const holds = (form, condition) => { const [name, value] = condition.split("="); return enteredIn(form, name) === value; };
const applies = (form, { when, unless, about }, out) => (!when || holds(form, when)) && !(unless && holds(form, unless)) && !about.split(" ").some((letter) => out.includes(letter));

const update = (form) => {
  const out = [...form.querySelectorAll("[data-letter]")].filter(({ value }) => value).map(({ dataset }) => dataset.letter);
  for (const field of form.querySelectorAll("[data-question]")) field.hidden = !applies(form, field.dataset, out);
};

for (const form of document.querySelectorAll("form:has([data-question])")) {
  form.addEventListener("input", () => update(form));
  update(form);
}
