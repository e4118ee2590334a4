"""Foreign data formats: rows to cases, and cases back to the same rows.

In reading order: `_turns` (fields as turns, transcripts, exchanges), `_rows` (`RowFormat`, a format as a value; the
reader of a case, ids, the form of a row, numbers as ratings), `_pairs` (`PairFormat`, one better and one worse answer
per row; ranks as tiers), `_annotation_tools` (names of the user's choice), `_tool_exports` (flat exports as records).

Then the formats: `pairwise` and `conversation_pairs` are pairs; `rewardbench` and `rmb` benchmarks; `whole_cases`,
`ranked_answers`, `message_trees`, `judged_outputs`, `site_votes` and `open_webui` have ranks or verdicts;
`ultrafeedback`, `helpsteer`, `translations` and `labelled_answers` have ratings; `annotation_records` and
`annotation_rows` are annotation tools;
`prompt_rows` and `prompt_sources` are prompts without answers;
`columns` is a table of the user's own, whose cells `_column_values` reads.
"""
