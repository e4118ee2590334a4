"""Floor 2: the method itself, pure. Values and arrays in, values and arrays out."""
