"""Batching, losses and schedules of reward-model training."""
