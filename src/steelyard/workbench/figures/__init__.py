"""Figures of how a project goes: progress and forecast, agreement, people, items that are hard."""
