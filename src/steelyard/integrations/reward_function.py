"""A reward model as a function of prompts and completions, as reinforcement learning calls it.

TRL's trainers (GRPO, RLOO, online DPO) take it as an entry of ``reward_funcs``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steelyard.core.checks import Turns, read_responses, read_turns
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.protocols import RewardModel
from steelyard.core.types import Case, Message, Prompt
from steelyard.plugins.reward_models import build_model, choose_model, scored


class RewardFunction:
    """Score completions with a reward model.

    ``model`` is the folder of a trained model, a kind such as ``longer``, or a loaded model. Texts without roles are a
    user's turn and the assistant's answer. The completions of one prompt are scored together, so that the prompt is
    computed once for all of them; a reward does not depend on the others.

    A completion that has no reward, as one over the model's length limit, raises EvidenceError: TRL would count a
    missing reward as 0, which may be better than every other. ``unscored`` is a reward for such completions instead.
    """

    def __init__(self, model: str | Path | RewardModel, *, unscored: float | None = None) -> None:
        is_loaded = not isinstance(model, str | Path)
        if is_loaded and not isinstance(model, RewardModel):
            problem = f"model is {type(model).__name__}"
            raise ConfigError(problem, where="RewardFunction", allowed="a path or a name, or a loaded reward model")
        if unscored is not None and not isinstance(unscored, int | float):
            raise ConfigError(
                f"unscored is {type(unscored).__name__}", where="RewardFunction", allowed="a number, None"
            )
        self.model = model if is_loaded else build_model(choose_model(str(model)))
        self.unscored = unscored
        # The name under which a trainer logs the rewards.
        self.__name__ = type(self.model).__name__ if is_loaded else Path(str(model)).name

    def __call__(self, prompts: Sequence[Turns], completions: Sequence[Turns], **_: Any) -> list[float]:
        """Return the reward of each completion, in order. The data's other columns have no effect.

        Raises ConfigError for a value that is neither a text nor messages, EvidenceError for a completion without a
        reward.
        """
        cases, places = conversations(prompts, completions)
        rewards: list[float] = [0.0] * len(completions)
        for case, line in zip(cases, scored(self.model, cases, name=self.__name__, quietly=True), strict=True):
            for place, response in zip(places[case.prompt.id], case.responses, strict=True):
                value = line.scores[response.id]
                rewards[place] = self._without_score(line.unscored[response.id], place) if value is None else value
        return rewards

    def _without_score(self, reason: str, place: int) -> float:
        if self.unscored is None:
            raise EvidenceError(
                f"completion {place} has no reward: {reason}",
                do="limit the length of completions, load the model with over_length='left' or 'right', or give "
                "RewardFunction(..., unscored=REWARD)",
            )
        return self.unscored


def conversations(
    prompts: Sequence[Turns], completions: Sequence[Turns]
) -> tuple[tuple[Case, ...], dict[str, list[int]]]:
    """Return one case for each distinct prompt, with the positions of its responses among the completions.

    Raises ConfigError for a value that is neither a text nor messages, and for lists of two lengths.
    """
    responses = read_responses(completions, where="completions")
    if isinstance(prompts, str | bytes) or not isinstance(prompts, Sequence) or len(prompts) != len(responses):
        shown = len(prompts) if isinstance(prompts, Sequence) and not isinstance(prompts, str | bytes) else "no list of"
        raise ConfigError(f"{shown} prompts for {len(responses)} completions", allowed="a prompt for each completion")
    places: dict[tuple[Message, ...], list[int]] = {}
    for place, prompt in enumerate(prompts):
        places.setdefault(read_turns(prompt, "user", where=f"prompts[{place}]"), []).append(place)
    cases = tuple(
        Case(
            prompt=Prompt(id=str(number), messages=messages),
            responses=tuple(responses[place] for place in members),
        )
        for number, (messages, members) in enumerate(places.items())
    )
    return cases, {case.prompt.id: members for case, members in zip(cases, places.values(), strict=True)}
