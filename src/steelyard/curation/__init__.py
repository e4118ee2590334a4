"""Curation of cases: what enters a training set. Pure functions; the stages read and write the files.

- Distant supervision: `supervision` (policies), `supervised` (whole cases), `calibration` (the margin threshold).
- Its study: `filter_study` (pairs, and precision by coverage).
- Other steps: `debiasing`, `splits`.
- Cases and formats: `merge` (cases of one key, rows of one prompt), `format_support` (parts that a format loses).
"""
