"""Exchange with other annotation tools: open tasks go out to them, the answers of their people come back.

`external_tasks` has the tasks as annotators may see them, and the manifest that says what they are; a tool is a file
with a value ``TOOL`` (`argilla`, `label_studio`, `potato`); `answer_import` brings answers into a workbench,
`answered_cases` into a case file.
"""
