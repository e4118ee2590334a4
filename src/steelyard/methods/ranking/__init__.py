"""Preference graphs, tiers, conflicts and the pairs that follow from them."""
