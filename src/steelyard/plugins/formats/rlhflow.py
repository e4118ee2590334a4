"""RLHFlow's standard preference rows: two whole conversations that share their prompt, each with a score or null.

Written from ``bradley-terry-rm/README.md`` of RLHFlow/RLHF-Reward-Modeling and the fields of the standard sets that
it links (``chosen``, ``rejected``, ``chosen_score``, ``rejected_score``). They keep the numbers that their sources
have: a rating model's, a person's, a count of votes. So a score is a rating without a scale, by ``unknown``;
``rater`` and ``rater_kind`` say who it was where one knows. Nothing is derived from the scores, and a pair whose
scores do not agree with its order is counted. Rows without scores are TRL's.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Kind
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_turns,
    as_read,
    count_other_keys,
    form_of,
    rest,
    with_meta,
    with_prompt,
)
from steelyard.plugins.formats._implicit import SIDES, Parts, is_found_again, shared_turns, whole_turns
from steelyard.plugins.formats._pairwise import pair_case, pair_rows
from steelyard.plugins.formats._parts import UNKNOWN, carrying_pairs
from steelyard.plugins.formats._ratings import Scale, number_field, scored, take_ratings

_KIND = "rlhflow"
_SCORES = ("chosen_score", "rejected_score")
_KEYS = (*SIDES, *_SCORES)


class Config(BaseConfig, frozen=True):
    """Who gave the scores: a name, and ``human``, ``llm`` or ``model``."""

    rater: str = UNKNOWN
    rater_kind: Kind = "human"


class RlhFlow:
    """One row a pair; its scores are ratings of the dimension ``score``."""

    keys = _KEYS
    carries = carrying_pairs("answers of several turns")

    def __init__(self, config: Config) -> None:
        self._scale = Scale("score", None, config.rater, config.rater_kind)

    def recognises(self, row: dict[str, Any]) -> bool:
        """Two lists of turns beside two scores."""
        return all(isinstance(row.get(key), list) for key in SIDES) and set(_SCORES) <= row.keys()

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two tiers, with the scores that there are."""
        ids = PromptIds(noted)
        for row in rows:
            parts = shared_turns(row, SIDES)
            for key in SIDES:
                count_other_keys(row.value.get(key), ("role", "content"), noted)
            scores = tuple(number_field(row, key) for key in _SCORES)
            meta = as_read(_KIND, absent=[key for key in _SCORES if key not in row.value])
            prompt = with_prompt(parts.prompt, id=ids.made(row), meta=rest(row, _KEYS))
            case = pair_case(prompt, (parts.chosen, parts.rejected), noted, meta=meta)
            yield replace(case, ratings=scored(case, scores, self._scale, noted))

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a pair, with the scores of both answers or null."""
        for case in cases:
            absent = form_of(case, _KIND).get("absent", ())
            taken = take_ratings(case, (self._scale,), lost)
            for better, worse, _ in pair_rows(taken.rest, lost, self.carries):
                parts = Parts(case.prompt.messages, answer_turns(better), answer_turns(worse))
                lost["prompts inside the answers"] += not is_found_again(parts)
                values = (taken.value(response.id, "score") for response in (better, worse))
                scores = dict(zip(_SCORES, values, strict=True))
                said = {key: value for key, value in scores.items() if value is not None or key not in absent}
                yield with_meta(whole_turns(parts) | said, case, _KEYS, lost)


def build(config: Config) -> RlhFlow:
    """The format."""
    return RlhFlow(config)
