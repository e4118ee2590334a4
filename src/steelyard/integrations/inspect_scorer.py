"""A reward model as a scorer of inspect_ai: the reward of each sample's answer, with mean and standard error."""

import asyncio
from pathlib import Path
from threading import Lock
from typing import Any

from steelyard.core.protocols import RewardModel
from steelyard.integrations.reward_function import RewardFunction


def inspect_scorer(model: str | Path | RewardModel, *, unscored: float | None = None) -> Any:
    """Return a scorer for ``Task(scorer=...)``: the reward of the conversation's last assistant turn.

    The turns before it are the prompt. ``unscored`` is as in `RewardFunction`. inspect_ai scores samples concurrently:
    the model takes one at a time. Raises ImportError without inspect_ai.
    """
    from inspect_ai.scorer import Score, mean, scorer, stderr

    rewards = RewardFunction(model, unscored=unscored)
    lock = Lock()

    def reward_of(state: Any) -> float:
        turns = [{"role": turn.role, "content": turn.text} for turn in state.messages if turn.role != "tool"]
        last = max((place for place, turn in enumerate(turns) if turn["role"] == "assistant"), default=len(turns))
        with lock:
            return rewards([turns[:last]], [state.output.completion])[0]

    @scorer(metrics=[mean(), stderr()], name=rewards.__name__)
    def reward() -> Any:
        async def score(state: Any, target: Any) -> Any:
            value = await asyncio.to_thread(reward_of, state)
            return Score(value=value, answer=state.output.completion)

        return score

    return reward()
