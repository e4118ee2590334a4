"""Translation of prompts and responses, as pure functions; a translator is called elsewhere.

- `blocks`: the paragraphs, list items, cells and blocks of code of a Markdown text, and their places.
- `program_lines`: the lines of programs outside fenced code, by their form.
- `inline_pieces`: what must not be translated within a paragraph, by the grammar of each kind.
- `protection`: a text with marks in place of what must not be translated.
- `marks`: the styles of marks, and the translated text with each piece in the place of its mark.
- `items`: the texts of a case that are translated together.
- `requests`: the requests for an item, and those for what comes back damaged.
- `passages`: a text of a case as the checks of damage see it, beside its translation.
- `damage`: what a translation lost or changed, by the checks of `wording`, `bench_lengths`, `numbers`, `negation` and
  `structure`.
- `screening`: prompts that depend on English, and cannot be translated.
- `grading`: EASY and HARD pairs of translations that people rated.
"""
