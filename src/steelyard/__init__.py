"""Steelyard: build and evaluate reward models in any language."""
