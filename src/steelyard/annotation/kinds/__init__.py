"""The kinds of tasks, one file each with a value ``KIND``. A new kind is a file here, and its words in the pages."""
