"""The stages of recipes in which people work: one file each, which a recipe names as it names a verb.

``annotate`` imports cases into a project and waits for its people, ``annotated`` exports the final answers, and
``release`` makes a bench of them. The command line has ``steelyard workbench`` for this instead.
"""
