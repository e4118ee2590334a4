"""The workbench: people compare responses in the browser, through a gate, alignment and three layers of review.

Packages, each importing from those before it alone: ``storage`` (tables, transactions, audit log), ``pipeline`` (the
way of an item), ``accounts`` (people and permissions), ``qualification``, ``figures`` (progress, agreement, people),
``views`` (what pages show), ``results`` (releases, the paper), ``exchange`` (other annotation tools), ``routes`` (one
file for each area of the site). Above them: ``application`` and ``serving``, ``simulation`` and ``demo``.
"""
