"""Floor 1: the words, the contracts, configuration, plug-in lookup, errors and seeds. Nothing here has effects."""
