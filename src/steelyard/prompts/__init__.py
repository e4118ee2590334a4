"""Operations on prompts. `near_duplicates` finds texts that are nearly the same, in any language."""
