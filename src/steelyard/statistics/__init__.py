"""Accuracy, agreement, resampling: what a number means and how sure it is."""
