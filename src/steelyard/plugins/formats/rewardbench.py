"""RewardBench v1 rows: a prompt, a chosen and a rejected answer with their models, a subset and an id.

Written from the public description of allenai/reward-bench's data. Ids repeat across subsets there, so a case's id is
``SUBSET/ID``; the row's own id comes back out. M-RewardBench's rows (``language``, ``source``) are read as well.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.identity import UniqueIds
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_turns,
    as_read,
    as_turns,
    count_other_keys,
    form_of,
    nulls_of,
    optional_text,
    response_of,
    rest,
    text_field,
    turn_keys,
    turns_of,
    with_meta,
    with_nulls,
    with_prompt,
)
from steelyard.plugins.formats._pairwise import pair_rows
from steelyard.plugins.formats._parts import carrying_pairs

_KIND = "rewardbench"
_KEYS = ("prompt", "chosen", "rejected", "chosen_model", "rejected_model", "subset", "id", "language")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class RewardBench:
    """One row a pair: two responses named ``chosen`` and ``rejected``."""

    keys = _KEYS
    carries = carrying_pairs("language", "subset", "authors", "answers of several turns")

    def recognises(self, row: dict[str, Any]) -> bool:
        """A pair that names both models and its subset (in M-RewardBench, its source)."""
        has_subset = "subset" in row or "source" in row
        return {"prompt", "chosen", "rejected", "chosen_model", "rejected_model"} <= row.keys() and has_subset

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two tiers, one response in each."""
        ids = PromptIds(noted)
        for row in rows:
            subset_key = "source" if "source" in row.value and "subset" not in row.value else "subset"
            subset = text_field(row, subset_key)
            given, language = row.value.get("id"), optional_text(row, "language")
            # One item in several languages keeps one id; within a language ids are unique.
            name = ids.made(row) if given is None else ids.given(f"{subset}/{given}", row, language=language)
            for key in ("prompt", "chosen", "rejected"):
                count_other_keys(row.value.get(key), ("role", "content"), noted)
            form = {
                "null": nulls_of(row, ("language",)),
                "id": given,
                "subset": subset_key if subset_key != "subset" else None,
                "turns": turn_keys(row, ("prompt", "chosen", "rejected")),
            }
            yield Case(
                prompt=with_prompt(
                    turns_of(row.value.get("prompt"), row.place, "prompt", role="user"),
                    id=name,
                    subset=subset,
                    language=language,
                    meta=rest(row, (*_KEYS, subset_key)),
                ),
                responses=tuple(
                    response_of(
                        side,
                        turns_of(row.value.get(side), row.place, side, role="assistant"),
                        author=optional_text(row, f"{side}_model"),
                    )
                    for side in ("chosen", "rejected")
                ),
                ranking=(("chosen",), ("rejected",)),
                meta=as_read(_KIND, **form),
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a pair; a case of several pairs repeats its prompt under ids of its own."""
        ids: defaultdict[tuple[str | None, str | None], UniqueIds] = defaultdict(UniqueIds)
        for case in cases:
            form = form_of(case, _KIND)
            given = form.get("id", case.prompt.id)
            rows = list(pair_rows(case, lost, self.carries))
            for number, (better, worse, _) in enumerate(rows):
                values = {
                    "prompt": case.prompt.messages,
                    "chosen": answer_turns(better),
                    "rejected": answer_turns(worse),
                }
                said = {key: _written(key, turns, form) for key, turns in values.items()}
                wanted = given if len(rows) == 1 else f"{given}-{number}"
                free = ids[case.prompt.subset, case.prompt.language].take(str(wanted))
                lost["ids that stand already"] += free != str(wanted)
                row = {
                    "id": wanted if free == str(wanted) else free,
                    "prompt": said["prompt"],
                    "chosen": said["chosen"],
                    "chosen_model": better.author,
                    "rejected": said["rejected"],
                    "rejected_model": worse.author,
                    form.get("subset", "subset"): case.prompt.subset or "",
                    **({"language": case.prompt.language} if case.prompt.language else {}),
                }
                yield with_meta(with_nulls(row, form), case, _KEYS, lost)


def build(config: Config) -> RewardBench:
    """The format."""
    return RewardBench()


def _written(key: str, turns: Sequence[Message], form: dict[str, Any]) -> Any:
    role = "user" if key == "prompt" else "assistant"
    is_text = len(turns) == 1 and turns[0].role == role and key not in form.get("turns", ())
    return turns[0].content if is_text else as_turns(turns)
