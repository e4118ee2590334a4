"""Floor 4: one a verb. Read, call methods and plug-ins, write. Stages do not import each other."""
