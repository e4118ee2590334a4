"""The verbs of the command line, one file each: the file name is the verb, `command` is what it does."""
