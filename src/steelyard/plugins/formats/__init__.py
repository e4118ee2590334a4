"""Foreign data formats: rows to cases, and cases back to the same rows.

In reading order: `_pair_format` (the loop of formats with one better and one worse answer a row, which are values),
`_pair_rows` (the turns of a pair, a prompt inside both answers), `_fields` (fields as turns, ids, the recorded form of
a row). Then the formats: `pairwise`, `conversation_pairs` and `llamafactory` hold pairs; `rewardbench`, `rm_bench` and
`rmb` are benchmarks (`_pair_sides`); `argilla`, `label_studio`, `potato` and `prodigy` are annotation tools
(`_annotation_items`); `helpsteer`, `maple` and `mqm` have one answer or error a row (`_grouping`). `_ratings` reads
numbers as ratings and ranks as tiers, `_conversations` one text or exchanges as turns.
"""
