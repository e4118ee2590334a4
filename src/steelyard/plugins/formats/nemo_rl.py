"""NeMo-RL's preference rows: a context and any number of completions, each with its rank.

Written from ``docs/guides/rm.md`` and ``docs/guides/dpo.md`` of NVIDIA-NeMo/RL: the lowest rank is the best, and a
completion is a list of turns. Equal ranks are a tie. The format holds any number of completions, the trainer there
takes two. ``task_name`` names the data set, and is the prompt's source here.

The binary form (``prompt``, ``chosen``, ``rejected``, under keys of choice) cannot be told from TRL's and OpenRLHF's:
``trl`` reads and writes it, ``openrlhf`` does so under other keys.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message, Ranking, Response
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_ids,
    answer_turns,
    as_read,
    as_turns,
    count_other_keys,
    form_of,
    is_number,
    list_field,
    nulls_of,
    optional_text,
    response_of,
    rest,
    turns_of,
    with_meta,
    with_nulls,
    with_prompt,
)
from steelyard.plugins.formats._parts import carrying, count_lost

_KIND = "nemo_rl"
_KEYS = ("context", "completions", "task_name")
_OWN = ("rank", "completion")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class NemoRl:
    """One row a prompt, with all its ranked answers."""

    keys = _KEYS
    carries = carrying(
        "system turns", "earlier turns", "source", "prompt meta", "answers of several turns", "response meta",
        "rankings", "ties", "more than two responses",
    )  # fmt: skip

    def recognises(self, row: dict[str, Any]) -> bool:
        """A context beside completions that have a rank."""
        items = row.get("completions")
        return (
            isinstance(row.get("context"), list)
            and isinstance(items, list)
            and all(isinstance(item, dict) and set(_OWN) <= item.keys() for item in items)
        )

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases in tiers of equal rank."""
        ids = PromptIds(noted)
        for row in rows:
            items = list_field(row, "completions")
            if not items:
                raise RecordError("no completions", where=row.place._replace(path="completions"))
            given = [_completion(row, index, item, noted) for index, item in enumerate(items)]
            names = answer_ids([turns for turns, _ in given], noted)
            ranks = [rank for _, rank in given]
            count_other_keys(row.value.get("context"), ("role", "content"), noted)
            ranking = _tiers(names, ranks)
            meta = as_read(
                _KIND,
                ranks=ranks if ranks != _ranks(names, ranking) else None,
                null=nulls_of(row, ("task_name",)),
            )
            yield Case(
                prompt=with_prompt(
                    turns_of(row.value.get("context"), row.place, "context", role="user"),
                    id=ids.made(row),
                    source=optional_text(row, "task_name"),
                    meta=rest(row, _KEYS),
                ),
                responses=tuple(
                    response_of(name, turns, meta=_other(item))
                    for name, (turns, _), item in zip(names, given, items, strict=True)
                ),
                ranking=ranking,
                meta=meta,
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a prompt; responses without a rank are left out and counted."""
        for case in cases:
            count_lost(case, lost, self.carries)
            ranked = {name for tier in case.ranking or () for name in tier}
            answers = [response for response in case.responses if response.id in ranked]
            lost["unranked responses"] += len(case.responses) - len(answers)
            if not answers:
                lost["prompts without a ranking"] += 1
                continue
            form = form_of(case, _KIND)
            names = [response.id for response in answers]
            ranks = _ranks(names, case.ranking or ())
            kept = form.get("ranks", ranks)
            ranks = kept if len(kept) == len(names) and _tiers(names, kept) == case.ranking else ranks
            row = {
                "context": as_turns(case.prompt.messages),
                "completions": [_written(one, rank, lost) for one, rank in zip(answers, ranks, strict=True)],
                **({"task_name": case.prompt.source} if case.prompt.source is not None else {}),
            }
            yield with_meta(with_nulls(row, form), case, _KEYS, lost)


def build(config: Config) -> NemoRl:
    """The format."""
    return NemoRl()


def _completion(row: Row, index: int, item: Any, noted: Counter[str]) -> tuple[tuple[Message, ...], float]:
    place = row.place._replace(path=f"completions[{index}]")
    if not isinstance(item, dict) or not is_number(item.get("rank")):
        raise RecordError(
            "a completion without a number as its rank", where=place, allowed='{"rank": 0, "completion": …}'
        )
    count_other_keys(item.get("completion"), ("role", "content"), noted)
    if not isinstance(item.get("completion"), list):
        raise RecordError("a completion that is no list of turns", where=place, allowed='[{"role": …, "content": …}]')
    return turns_of(item["completion"], place, f"completions[{index}].completion", role="assistant"), item["rank"]


def _other(item: dict[str, Any]) -> dict[str, Any] | None:
    return {key: value for key, value in item.items() if key not in _OWN} or None


def _tiers(names: Sequence[str], ranks: Sequence[float]) -> Ranking:
    tiers: dict[float, list[str]] = defaultdict(list)
    for name, rank in zip(names, ranks, strict=True):
        tiers[rank].append(name)
    return tuple(tuple(tiers[rank]) for rank in sorted(tiers))


def _ranks(names: Iterable[str], ranking: Ranking) -> list[float]:
    """The number of each answer's tier, from 0."""
    number = {name: place for place, tier in enumerate(ranking) for name in tier}
    return [number[name] for name in names]


def _written(response: Response, rank: float, lost: Counter[str]) -> dict[str, Any]:
    meta = response.meta or {}
    clashing = len(meta.keys() & set(_OWN))
    if clashing:
        lost["response meta under the format's own names"] += clashing
    return {**meta, "rank": rank, "completion": as_turns(answer_turns(response))}
