"""RewardBench 2 rows: a prompt, lists of right and wrong answers, and a subset.

Written from the dataset card of allenai/reward-bench-2: ``chosen`` has one answer, several in the subset Ties;
``models`` names the authors of the chosen and then of the rejected answers. In Ties an id is ``ref:N`` (one right
answer) or ``tied:N`` (several). A case's id is ``SUBSET/ID``; the row's own id comes back out. The ranking has two
tiers, and the bench's question, whether a right answer scores above every wrong one, is about the pairs across them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Response
from steelyard.plugins.formats._fields import (
    PromptIds,
    as_read,
    count_other_keys,
    form_of,
    nulls_of,
    rest,
    text_field,
    text_or_list,
    turn_keys,
    turns_of,
    with_meta,
    with_nulls,
    with_prompt,
)
from steelyard.plugins.formats._pairwise import answer_text
from steelyard.plugins.formats._parts import carrying, count_lost
from steelyard.plugins.formats._sides import (
    SIDES,
    Sides,
    SubsetIds,
    absent_keys,
    sides_of,
    texts_field,
)

_KIND = "rewardbench2"
_NUMBERS = ("num_correct", "num_rejected", "total_completions")
_OPTIONAL = ("id", *_NUMBERS, "models")
_KEYS = ("prompt", *SIDES, "subset", *_OPTIONAL)


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class RewardBench2:
    """One row a prompt; ``additional_metadata`` is a key of the row's own, and goes into the prompt's ``meta``."""

    keys = _KEYS
    carries = carrying(
        "system turns", "earlier turns", "subset", "prompt meta", "authors", "rankings", "ties",
        "more than two responses",
    )  # fmt: skip

    def recognises(self, row: dict[str, Any]) -> bool:
        """Two lists of texts, a subset, and their numbers or models."""
        sides = [row.get(side) for side in SIDES]
        is_counted = any(key in row for key in (*_NUMBERS, "models"))
        return (
            is_counted
            and {"prompt", "subset"} <= row.keys()
            and all(
                isinstance(side, list) and bool(side) and all(isinstance(text, str) for text in side) for side in sides
            )
        )

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two tiers: the right answers and the wrong ones."""
        ids = PromptIds(noted)
        for row in rows:
            subset, given = text_field(row, "subset"), row.value.get("id")
            texts = {side: texts_field(row, side) for side in SIDES}
            authors, models = _authors(row, sum(map(len, texts.values())))
            count_other_keys(row.value.get("prompt"), ("role", "content"), noted)
            messages = turns_of(row.value.get("prompt"), row.place, "prompt", role="user")
            name = ids.made(row) if given is None else ids.given(f"{subset}/{given}", row)
            named = [(f"{side}-{number}", text) for side in SIDES for number, text in enumerate(texts[side], 1)]
            numbers = _numbers(*map(len, texts.values()))
            said = {key: row.value[key] for key in _NUMBERS if row.value.get(key) is not None}
            noted["numbers that are not those of the answers"] += any(said[key] != numbers[key] for key in said)
            meta = as_read(
                _KIND,
                id=given,
                models=models,
                numbers=said if any(said[key] != numbers[key] for key in said) else None,
                absent=absent_keys(row, _OPTIONAL),
                null=nulls_of(row, _OPTIONAL),
                turns=turn_keys(row, ("prompt",)),
            )
            yield Case(
                prompt=with_prompt(messages, id=name, subset=subset, meta=rest(row, _KEYS)),
                responses=tuple(
                    Response(id=one, text=text, author=author)
                    for (one, text), author in zip(named, authors, strict=True)
                ),
                ranking=tuple(tuple(one for one, _ in named if one.startswith(side)) for side in SIDES),
                meta=meta,
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a case of two tiers; other cases are counted and not written."""
        ids = SubsetIds(lost)
        for case in cases:
            count_lost(case, lost, self.carries)
            sides = sides_of(case, lost)
            if sides.better:
                yield _row(case, sides, ids, lost)


def build(config: Config) -> RewardBench2:
    """The format."""
    return RewardBench2()


def _numbers(num_chosen: int, num_rejected: int) -> dict[str, int]:
    return dict(zip(_NUMBERS, (num_chosen, num_rejected, num_chosen + num_rejected), strict=True))


def _authors(row: Row, number: int) -> tuple[list[str | None], Any]:
    """An author for each answer, and ``models`` itself where it does not name them one by one."""
    models = row.value.get("models")
    if (
        isinstance(models, list)
        and len(models) == number
        and all(model is None or isinstance(model, str) for model in models)
        and any(model is not None for model in models)
    ):
        return models, None
    return [None] * number, models


def _row(case: Case, sides: Sides, ids: SubsetIds, lost: Counter[str]) -> dict[str, Any]:
    form, subset = form_of(case, _KIND), case.prompt.subset or ""
    models = [response.author for side in sides for response in side]
    texts = {key: [answer_text(response, lost) for response in side] for key, side in zip(SIDES, sides, strict=True)}
    numbers = _numbers(*map(len, sides))
    row = {
        "id": ids.take(form.get("id", case.prompt.id), subset),
        "prompt": text_or_list(case.prompt.messages, "user", as_list="prompt" in form.get("turns", ())),
        **texts,
        **numbers,
        **form.get("numbers", {}),
        "models": models if any(models) else form.get("models", []),
        "subset": subset,
    }
    silent = {key for key in form.get("absent", ()) if key != "models" or not row["models"]}
    nulls = {key: None for key in form.get("null", ()) if key != "models" or not any(models)}
    row = {key: value for key, value in row.items() if key not in silent} | nulls
    return with_meta(with_nulls(row, form), case, _KEYS, lost)
