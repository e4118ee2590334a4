"""Records, protocols, configuration, plug-in lookup, errors and seeds. Nothing here has effects."""
