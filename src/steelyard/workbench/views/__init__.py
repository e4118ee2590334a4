"""Contents of pages and forms: words, safe texts, blind tasks, items, settings, uploads."""
