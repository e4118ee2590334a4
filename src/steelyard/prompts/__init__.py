"""Prompts: their languages, duplicates, private data, harmful content, categories and balance. Pure; no files.

- `taxonomy`: the categories of prompts, those of published sets, and the criteria of judges.
- `classification`: a category for prompts without one; `category_agreement`: compared with people's.
- `near_duplicates`: shingles, MinHash and linked groups, in any language.
- `languages`: the language of a text, and the script of a Chinese one.
- `private_data` and `harmful`: what is found in one text, by tables of patterns.
- `masking`: private data of a whole case.
- `screening` (one prompt), `selection` (all of them, in order), `balance` (wanted shares).
"""
