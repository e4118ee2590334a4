"""A reward model as a function of prompts and completions, as reinforcement learning calls it.

TRL's trainers (GRPO, RLOO, online DPO) take it as an entry of ``reward_funcs``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from steelyard.core.errors import EvidenceError, RecordError
from steelyard.core.protocols import RewardModel
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.plugins.reward_models import build_model, choose_model, scored

Text: TypeAlias = str | Sequence[Mapping[str, Any]]
"""A text, or the messages of a conversation with ``role`` and ``content``."""


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
        self.model = model if is_loaded else build_model(choose_model(str(model)))
        self.unscored = unscored
        # The name under which a trainer logs the rewards.
        self.__name__ = type(self.model).__name__ if is_loaded else Path(str(model)).name

    def __call__(self, prompts: Sequence[Text], completions: Sequence[Text], **_: Any) -> list[float]:
        """Return the reward of each completion, in order. The data's other columns have no effect.

        Raises RecordError for a message without text, and EvidenceError for a completion without a reward.
        """
        rewards: list[float] = [0.0] * len(completions)
        cases, places = conversations(prompts, completions)
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
    prompts: Sequence[Text], completions: Sequence[Text]
) -> tuple[tuple[Case, ...], dict[str, list[int]]]:
    """Return one case for each distinct prompt, with the positions of its responses among the completions."""
    places: dict[tuple[Message, ...], list[int]] = {}
    for place, (prompt, _) in enumerate(zip(prompts, completions, strict=True)):
        places.setdefault(_messages(prompt, "user", f"prompts[{place}]"), []).append(place)
    cases = tuple(
        Case(
            prompt=Prompt(id=str(number), messages=messages),
            responses=tuple(_response(completions[place], place) for place in members),
        )
        for number, (messages, members) in enumerate(places.items())
    )
    return cases, {case.prompt.id: members for case, members in zip(cases, places.values(), strict=True)}


def _response(completion: Text, place: int) -> Response:
    if isinstance(completion, str):
        return Response(id=str(place), text=completion)
    return Response(id=str(place), messages=_messages(completion, "assistant", f"completions[{place}]"))


def _messages(text: Text, role: str, where: str) -> tuple[Message, ...]:
    if isinstance(text, str):
        return (Message(role=role, content=text),)
    turns = [{"role": turn.get("role", role), "content": turn.get("content")} for turn in text]
    try:
        messages = tuple(msgspec.convert(turn, Message) for turn in turns)
    except msgspec.ValidationError as error:
        raise RecordError(f"a message that is not a role and a text: {error}", where=where) from error
    if not messages:
        raise RecordError("a conversation without messages", where=where)
    return messages
