"""The Python API: every verb as a typed function on paths or on values in memory, with results as frozen objects.

`cases` is the collection that flows between verbs; `calls` turns values in memory into the files of one call and its
settings into a Config; `outcomes` and `stage_outcomes` are the results. `data`, `judgments`, `models` and `comparisons`
hold the verbs: thin calls of the functions in `stages`. Their ``.pyi`` files spell out every setting for editors;
``make api`` writes them.
"""
