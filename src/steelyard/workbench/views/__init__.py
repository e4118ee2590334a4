"""What pages show and forms send: words, safe texts, blind tasks, items, settings, uploads."""
