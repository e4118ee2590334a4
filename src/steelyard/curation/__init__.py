"""Curation of cases: what enters a training set. Pure functions; the stages read and write the files.

- Distant supervision: `supervision` (policies), `supervised` (whole cases), `calibration` (the threshold tau).
- Its study: `filter_study` (pairs), `filtering` (precision by coverage), `filter_trials` (models trained on it).
- Other steps: `debiasing`, `splits`, `case_union`.
- Rows and formats: `pair_rows` (rows of one prompt as one case), `format_support` (parts that a format loses).
"""
