"""Results as people see them: one file a verb, and renderers that know no verb.

`view` has the type; `page` makes the contents of the report, `text` makes plain sentences and tables for the terminal
and for papers, and `records` makes the rows of Python's tables.
"""
