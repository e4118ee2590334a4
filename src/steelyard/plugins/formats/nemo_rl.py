"""NeMo-RL's preference rows: a context and any number of completions, each with its rank.

Written from ``docs/guides/rm.md`` and ``docs/guides/dpo.md`` of NVIDIA-NeMo/RL: the lowest rank is the best, and a
completion is a list of turns. Equal ranks are a tie. The format holds any number of completions, the trainer there
takes two. ``task_name`` names the data set, and is the prompt's source here.

The binary form (``prompt``, ``chosen``, ``rejected``, under keys of choice) cannot be told from TRL's and OpenRLHF's:
``trl`` reads and writes it, ``openrlhf`` does so under other keys.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import Case, JsonObject, Message, Ranking, Response
from steelyard.curation.format_support import carrying, count_lost
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_ids,
    answer_turns,
    as_read,
    as_turns,
    count_other_keys,
    field_turns,
    form_of,
    other_meta,
    response_of,
    turns_of,
    with_meta,
    with_nulls,
    with_prompt,
)
from steelyard.plugins.formats._ratings import rank_of, tiers_of

_KIND = "nemo_rl"
_KEYS = ("context", "completions", "task_name")
_OWN = ("rank", "completion")


class NemoRl:
    """One row a prompt, with all its ranked answers."""

    keys = _KEYS
    supports = carrying(
        "system turns", "earlier turns", "source", "prompt meta", "answers of several turns", "response meta",
        "rankings", "ties", "more than two responses",
    )  # fmt: skip

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has a context beside completions that have a rank."""
        items = row.get("completions")
        return (
            isinstance(row.get("context"), list)
            and isinstance(items, list)
            and all(isinstance(item, dict) and set(_OWN) <= item.keys() for item in items)
        )

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases in tiers of equal rank."""
        ids = PromptIds(warnings)
        for row in rows:
            items = row.items("completions")
            if not items:
                raise RecordError("no completions", where=row.at("completions"))
            completions = [_completion(row, index, item, warnings) for index, item in enumerate(items)]
            names = answer_ids([turns for turns, _ in completions], warnings)
            ranks = [rank for _, rank in completions]
            count_other_keys(row.value.get("context"), warnings)
            ranking = _tiers(names, ranks)
            meta = as_read(
                _KIND, ranks=ranks if ranks != _ranks(names, ranking) else None, null=row.nulls(("task_name",))
            )
            yield Case(
                prompt=with_prompt(
                    field_turns(row, "context", role="user"),
                    id=ids.take(row),
                    source=row.optional_text("task_name"),
                    meta=row.others(_KEYS),
                ),
                responses=tuple(
                    response_of(name, turns, meta=_other(item))
                    for name, (turns, _), item in zip(names, completions, items, strict=True)
                ),
                ranking=ranking,
                meta=meta,
            )

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row a prompt; responses without a rank are left out and counted."""
        for case in cases:
            count_lost(case, dropped, self.supports)
            ranked = {name for tier in case.ranking or () for name in tier}
            answers = [response for response in case.responses if response.id in ranked]
            dropped["unranked responses"] += len(case.responses) - len(answers)
            if not answers:
                dropped["prompts without a ranking"] += 1
                continue
            form = form_of(case, _KIND)
            names = [response.id for response in answers]
            ranks = _ranks(names, case.ranking or ())
            read_ranks = form.get("ranks", ranks)
            ranks = read_ranks if len(read_ranks) == len(names) and _tiers(names, read_ranks) == case.ranking else ranks
            row = {
                "context": as_turns(case.prompt.messages),
                "completions": [_written(answer, rank, dropped) for answer, rank in zip(answers, ranks, strict=True)],
                **({"task_name": case.prompt.source} if case.prompt.source is not None else {}),
            }
            yield with_meta(with_nulls(row, form), case, _KEYS, dropped)


KINDS = {"nemo_rl": without_settings(NemoRl(), __doc__)}


def _completion(row: Row, index: int, item: Any, warnings: Counter[str]) -> tuple[tuple[Message, ...], float]:
    place = row.at(f"completions[{index}]")
    if not isinstance(item, dict) or not is_number(item.get("rank")):
        raise RecordError(
            "a completion without a number as its rank", where=place, allowed='{"rank": 0, "completion": …}'
        )
    count_other_keys(item.get("completion"), warnings)
    if not isinstance(item.get("completion"), list):
        raise RecordError(
            "a completion that is not a list of turns", where=place, allowed='[{"role": …, "content": …}]'
        )
    return turns_of(item["completion"], place, f"completions[{index}].completion", role="assistant"), item["rank"]


def _other(item: JsonObject) -> JsonObject | None:
    return {key: value for key, value in item.items() if key not in _OWN} or None


def _tiers(names: Sequence[str], ranks: Sequence[float]) -> Ranking:
    return tiers_of(dict(zip(names, ranks, strict=True)))


def _ranks(names: Iterable[str], ranking: Ranking) -> list[float]:
    """Return the number of each answer's tier, from 0."""
    ranks = rank_of(ranking, first=0)
    return [ranks[name] for name in names]


def _written(response: Response, rank: float, dropped: Counter[str]) -> JsonObject:
    fields = {"rank": rank, "completion": as_turns(answer_turns(response))}
    return other_meta(response.meta, fields, dropped) | fields
