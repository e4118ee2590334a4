"""Responses of language models, as pure functions.

`plan` draws the models that answer a prompt, and seeds their requests. Cleaning: `subject` is a response as the rules
see it, `unfinished`, `faults`, `foreign` and `phrases` have its figures, `lengths` the usual lengths of a group,
`rules` the table of rules, `cleaning` what they do to a case, `cleaning_summary` what they did to a file.
"""
