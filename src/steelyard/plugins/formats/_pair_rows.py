"""Rows of one better and one worse answer: their turns, the rows of a case, and a prompt inside both answers."""

import os.path
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Message, Meta, Pair, Prompt, Response
from steelyard.curation.format_support import count_lost
from steelyard.plugins.formats._fields import (
    OTHER_SHAPE,
    answer_ids,
    answer_or_none,
    answer_turns,
    as_turns,
    field_turns,
    is_text,
    only_question,
    response_of,
)
from steelyard.ranking.pairs import IndexedPair, num_beyond_listed, pairs_of

SIDES = ("chosen", "rejected")
NOT_SEPARABLE = "prompts inside the answers"
"""The name under which written conversations are counted whose prompt would be cut elsewhere when read again."""
_ASSISTANT_MARK = "\n\nAssistant:"


class PairTurns(NamedTuple):
    """The turns of a pair: the prompt that both answers share, and each answer."""

    prompt: tuple[Message, ...]
    chosen: tuple[Message, ...]
    rejected: tuple[Message, ...]

    def are_texts(self) -> bool:
        """Return whether all three can be written as texts."""
        return (
            is_text(self.prompt, "user") and is_text(self.chosen, "assistant") and is_text(self.rejected, "assistant")
        )

    def is_separable(self) -> bool:
        """Return whether the two whole conversations would be cut here: not if the answers begin with equal turns."""
        return bool(self.prompt) and cut_turns(self.prompt + self.chosen, self.prompt + self.rejected) == self


class PairRow(NamedTuple):
    """A pair to write as one row: the better and the worse answer, and their positions."""

    better: Response
    worse: Response
    pair: IndexedPair

    def turns(self, case: Case) -> PairTurns:
        """Return the turns of the row."""
        return PairTurns(case.prompt.messages, answer_turns(self.better), answer_turns(self.worse))


def pair_rows(case: Case, dropped: Counter[str], supports: Collection[str]) -> Iterator[PairRow]:
    """Yield every pair of the case (its listed pairs, else all across tiers); what pairs cannot hold is counted."""
    pairs = pairs_of(case)
    count_lost(case, dropped, supports)
    used = {end for pair in pairs for end in pair[:2]}
    counts = {
        "responses in no pair": len(case.responses) - len(used),
        "ranked pairs that are not listed": num_beyond_listed(case, pairs_of(case, "tiers")),
        "prompts without a pair": not pairs,
    }
    for name, number in counts.items():
        if number:
            dropped[name] += int(number)
    for pair in pairs:
        yield PairRow(case.responses[pair.better], case.responses[pair.worse], pair)


def pair_case(
    prompt: Prompt,
    answers: Sequence[Sequence[Message]],
    warnings: Counter[str],
    *,
    margin: float | None = None,
    meta: Meta | None = None,
) -> Case:
    """Return a case of two tiers from the better and the worse answer; their ids are made of their texts."""
    better, worse = names = answer_ids(answers, warnings)
    return Case(
        prompt=prompt,
        responses=tuple(response_of(name, turns) for name, turns in zip(names, answers, strict=True)),
        ranking=((better,), (worse,)),
        pairs=None if margin is None else (Pair(better=better, worse=worse, margin=float(margin)),),
        meta=meta or {},
    )


def cut_turns(chosen: Sequence[Message], rejected: Sequence[Message]) -> PairTurns:
    """Cut two conversations after their longest common run of turns; at least one turn stays on either side."""
    length = 0
    while length < min(len(chosen), len(rejected)) - 1 and chosen[length] == rejected[length]:
        length += 1
    return PairTurns(tuple(chosen[:length]), tuple(chosen[length:]), tuple(rejected[length:]))


def shared_turns(row: Row, sides: Sequence[str] = SIDES, *, do: str | None = None) -> PairTurns:
    """Cut the two conversations of a row. Raises RecordError for other values, and where they share no turn."""
    turns = cut_turns(*(field_turns(row, key, role="assistant") for key in sides))
    if not turns.prompt:
        raise RecordError(f"{' and '.join(sides)} share no turn", where=row.place, do=do)
    return turns


def implicit_turns(
    row: Row, warnings: Counter[str], sides: Sequence[str] = SIDES, *, do: str | None = None
) -> PairTurns:
    """Cut two texts or two lists of turns with the prompt inside both. Raises RecordError where there is none.

    Texts keep their marks: what is written again is what was read.
    """
    chosen, rejected = (row.value.get(key) for key in sides)
    if not (isinstance(chosen, str) and isinstance(rejected, str)):
        return shared_turns(row, sides, do=do)
    common = os.path.commonprefix([chosen, rejected])  # noqa: RUF071  characters are what is meant
    at = common.rfind(_ASSISTANT_MARK)
    end = at + len(_ASSISTANT_MARK)
    if at < 0:
        end = common[: min(map(len, (chosen, rejected))) - 1].rfind("\n") + 1
    if end <= 0:
        raise RecordError(f"{' and '.join(sides)} share no prompt", where=row.place, do=do)
    warnings["prompts cut at a line break, not at a turn"] += at < 0
    texts = ("user", common[:end]), ("assistant", chosen[end:]), ("assistant", rejected[end:])
    return PairTurns(*((Message(role=role, content=text),) for role, text in texts))


def whole_texts(turns: PairTurns, sides: Sequence[str] = SIDES) -> JsonObject | None:
    """Return both conversations as texts; null where the prompt would be cut elsewhere when read again."""
    prompt, chosen, rejected = (part[0].content if part else "" for part in turns)
    row = dict(zip(sides, (prompt + chosen, prompt + rejected), strict=True))
    try:
        again = implicit_turns(Row(Place("the row to write"), row), Counter(), sides)
    except RecordError:
        return None
    return row if again == turns else None


def whole_turns(turns: PairTurns, sides: Sequence[str] = SIDES) -> JsonObject:
    """Return both conversations as lists of turns."""
    conversations = (as_turns(turns.prompt + turns.chosen), as_turns(turns.prompt + turns.rejected))
    return dict(zip(sides, conversations, strict=True))


class PlainTexts(NamedTuple):
    """A case's question, and its answers' texts by their ids."""

    question: str
    texts: Mapping[str, str]


def plain_texts(case: Case, dropped: Counter[str]) -> PlainTexts | None:
    """Return the texts of a case of one user turn and answers of one turn each; others are null and counted."""
    question = only_question(case.prompt.messages)
    texts = {response.id: answer_or_none(response) for response in case.responses}
    if question is None or None in texts.values():
        dropped[OTHER_SHAPE] += 1
        return None
    return PlainTexts(question, {name: text for name, text in texts.items() if text is not None})
