"""Foreign data formats: rows to cases, and cases back to the same rows.

In reading order: `_rows` (`RowFormat`, a format of one row per case as a value; fields as turns, ids, the form of a
row), `_ratings` (numbers as ratings, ranks as tiers), `_pairs` (`PairFormat`, one better and one worse answer per row),
`_conversations` (one text or exchanges as turns), `_annotation_tools` (names of the user's choice).

Then the formats: `pairwise`, `conversation_pairs` and `llamafactory` are pairs; `rewardbench` and `rmb` benchmarks;
`ranked_answers`, `judged_outputs`, `chatbot_arena` and `cheems` have ranks or verdicts; `ultrafeedback`, `helpsteer`,
`stackexchange`, `pku_saferlhf`, `translations` and `trl_labels` have ratings; `annotation_records` and
`annotation_rows` are annotation tools.
"""
