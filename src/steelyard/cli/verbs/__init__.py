"""The verbs of the command line. A file holds the verbs of one group of the help, in order, as `VERBS`.

A new verb is a stage and one value here: its name, its help with an example, its options and its lines of output.
"""
