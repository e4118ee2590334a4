"""RewardBench v1 rows: a prompt, a chosen and a rejected answer with their models, a subset and an id.

Written from the public description of allenai/reward-bench's data. Ids repeat across subsets there, so a case's id is
``SUBSET/ID``; the row's own id comes back out. M-RewardBench's rows (``language``, ``source``) are read as well.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.protocols import Row
from steelyard.core.types import Case
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_turns,
    as_turns,
    response_of,
    rest,
    text_field,
    turns_of,
    with_prompt,
)
from steelyard.plugins.formats._pairwise import pair_rows

_KEYS = ("prompt", "chosen", "rejected", "chosen_model", "rejected_model", "subset", "id", "language")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class RewardBench:
    """One row a pair: two responses named ``chosen`` and ``rejected``."""

    def recognises(self, row: dict[str, Any]) -> bool:
        """A pair that names both models and its subset (in M-RewardBench, its source)."""
        has_subset = "subset" in row or "source" in row
        return {"prompt", "chosen", "rejected", "chosen_model", "rejected_model"} <= row.keys() and has_subset

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two tiers, one response in each."""
        ids = PromptIds(noted)
        for row in rows:
            subset = text_field(row, "source" if "source" in row.value and "subset" not in row.value else "subset")
            given, language = row.value.get("id"), row.value.get("language")
            # One item in several languages keeps one id; within a language ids are unique.
            name = ids.made(row) if given is None else ids.given(f"{subset}/{given}", row, language=language)
            meta = {**(rest(row, _KEYS) or {}), **({} if given is None else {"id": given})}
            yield Case(
                prompt=with_prompt(
                    turns_of(row.value.get("prompt"), row.place, "prompt", role="user"),
                    id=name,
                    subset=subset,
                    language=language,
                    meta=meta,
                ),
                responses=tuple(
                    response_of(
                        side,
                        turns_of(row.value.get(side), row.place, side, role="assistant"),
                        author=row.value.get(f"{side}_model"),
                    )
                    for side in ("chosen", "rejected")
                ),
                ranking=(("chosen",), ("rejected",)),
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a pair; a case of several pairs repeats its prompt under ids of its own."""
        for case in cases:
            meta = dict(case.prompt.meta or {})
            given = meta.pop("id", case.prompt.id)
            rows = list(pair_rows(case, lost, carried=("language", "subset", "authors", "prompt meta")))
            for number, (better, worse, _) in enumerate(rows):
                turns = case.prompt.messages
                is_plain = len(turns) == 1 and turns[0].role == "user"
                yield {
                    "id": given if len(rows) == 1 else f"{given}-{number}",
                    "prompt": turns[0].content if is_plain else as_turns(turns),
                    "chosen": _answer(better),
                    "chosen_model": better.author,
                    "rejected": _answer(worse),
                    "rejected_model": worse.author,
                    **({} if "source" in meta and "subset" not in meta else {"subset": case.prompt.subset or ""}),
                    **({"language": case.prompt.language} if case.prompt.language else {}),
                    **meta,
                }


def build(config: Config) -> RewardBench:
    """The format."""
    return RewardBench()


def _answer(response: Any) -> Any:
    return response.text if response.text is not None else as_turns(answer_turns(response))
