"""RewardBench: pairs of answers (version 1, M-RewardBench), and lists of right and wrong answers (version 2).

Version 1 is written from the public description of allenai/reward-bench's data. Ids repeat across subsets there, so a
case's id is ``SUBSET/ID``; the row's own id comes back out. M-RewardBench's rows (``language``, ``source``) are read as
well.

Version 2 is written from the dataset card of allenai/reward-bench-2: ``chosen`` has one answer, several in the subset
Ties; ``models`` names the authors of the chosen and then of the rejected answers. In Ties an id is ``ref:N`` (one right
answer) or ``tied:N`` (several). The ranking has two tiers, and the bench's question, whether a right answer scores
above every wrong one, concerns the pairs across them. ``additional_metadata`` is another key of the row, and goes into
the prompt's ``meta``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Response
from steelyard.curation.format_support import carrying, carrying_pairs, count_lost
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_text,
    as_read,
    count_other_keys,
    field_turns,
    form_of,
    response_of,
    text_or_list,
    turn_keys,
    with_meta,
    with_nulls,
    with_prompt,
)
from steelyard.plugins.formats._pair_rows import SIDES, pair_rows
from steelyard.plugins.formats._pair_sides import RankedSides, SubsetIds, are_texts, sides_of, texts_field

_TURN_KEYS = ("prompt", *SIDES)
_NUMBERS = ("num_correct", "num_rejected", "total_completions")
_OPTIONAL = ("id", *_NUMBERS, "models")


class RewardBench:
    """One row a pair: two responses named ``chosen`` and ``rejected``."""

    _kind = "rewardbench"
    keys = (*_TURN_KEYS, "chosen_model", "rejected_model", "subset", "id", "language")
    supports = carrying_pairs("language", "subset", "authors", "answers of several turns")

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row is a pair that names both models and its subset (in M-RewardBench, its source)."""
        has_subset = "subset" in row or "source" in row
        return {*_TURN_KEYS, "chosen_model", "rejected_model"} <= row.keys() and has_subset

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases of two tiers, one response in each."""
        ids = PromptIds(warnings)
        for row in rows:
            subset_key = "source" if "source" in row.value and "subset" not in row.value else "subset"
            subset = row.text(subset_key)
            row_id, language = row.value.get("id"), row.optional_text("language")
            # One item in several languages has one id; within a language ids are unique.
            name = ids.take(row, None if row_id is None else f"{subset}/{row_id}", language=language)
            for key in _TURN_KEYS:
                count_other_keys(row.value.get(key), warnings)
            messages = field_turns(row, "prompt", role="user")
            meta = row.others((*self.keys, subset_key))
            answers = {side: field_turns(row, side, role="assistant") for side in SIDES}
            yield Case(
                prompt=with_prompt(messages, id=name, subset=subset, language=language, meta=meta),
                responses=tuple(
                    response_of(side, turns, author=row.optional_text(f"{side}_model"))
                    for side, turns in answers.items()
                ),
                ranking=(("chosen",), ("rejected",)),
                meta=as_read(
                    self._kind,
                    null=row.nulls(("language",)),
                    id=row_id,
                    subset=subset_key if subset_key != "subset" else None,
                    turns=turn_keys(row, _TURN_KEYS),
                ),
            )

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row a pair; a case of several pairs repeats its prompt under different ids."""
        ids = SubsetIds(dropped)
        for case in cases:
            form, prompt = form_of(case, self._kind), case.prompt
            row_id = form.get("id", prompt.id)
            pairs = list(pair_rows(case, dropped, self.supports))
            for number, pair in enumerate(pairs):
                texts = {
                    key: text_or_list(
                        turns, "user" if key == "prompt" else "assistant", as_list=key in form.get("turns", ())
                    )
                    for key, turns in zip(_TURN_KEYS, pair.turns(case), strict=True)
                }
                wanted = row_id if len(pairs) == 1 else f"{row_id}-{number}"
                row = {
                    "id": ids.take(wanted, prompt.subset, prompt.language),
                    "prompt": texts["prompt"],
                    "chosen": texts["chosen"],
                    "chosen_model": pair.better.author,
                    "rejected": texts["rejected"],
                    "rejected_model": pair.worse.author,
                    form.get("subset", "subset"): prompt.subset or "",
                    **({"language": prompt.language} if prompt.language else {}),
                }
                yield with_meta(with_nulls(row, form), case, self.keys, dropped)


class RewardBench2:
    """One row a prompt, with all right and all wrong answers."""

    _kind = "rewardbench2"
    keys = ("prompt", *SIDES, "subset", *_OPTIONAL)
    supports = carrying(
        "system turns", "earlier turns", "subset", "prompt meta", "authors", "rankings", "ties",
        "more than two responses",
    )  # fmt: skip

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has two lists of texts, a subset, and their numbers or models."""
        is_counted = any(key in row for key in (*_NUMBERS, "models"))
        return is_counted and {"prompt", "subset"} <= row.keys() and all(are_texts(row.get(side)) for side in SIDES)

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases of two tiers: the right answers and the wrong ones."""
        ids = PromptIds(warnings)
        for row in rows:
            subset, row_id = row.text("subset"), row.value.get("id")
            texts = {side: texts_field(row, side) for side in SIDES}
            authors, models = _authors(row, sum(map(len, texts.values())))
            count_other_keys(row.value.get("prompt"), warnings)
            messages = field_turns(row, "prompt", role="user")
            name = ids.take(row, None if row_id is None else f"{subset}/{row_id}")
            names = {side: tuple(f"{side}-{number}" for number, _ in enumerate(texts[side], 1)) for side in SIDES}
            numbers = _numbers(*map(len, texts.values()))
            read_numbers = {key: row.value[key] for key in _NUMBERS if row.value.get(key) is not None}
            is_miscounted = any(number != numbers[key] for key, number in read_numbers.items())
            warnings["numbers that are not those of the answers"] += is_miscounted
            answers = zip(sum(names.values(), ()), sum(texts.values(), ()), authors, strict=True)
            yield Case(
                prompt=with_prompt(messages, id=name, subset=subset, meta=row.others(self.keys)),
                responses=tuple(Response(id=answer, text=text, author=author) for answer, text, author in answers),
                ranking=tuple(names.values()),
                meta=as_read(
                    self._kind,
                    id=row_id,
                    models=models,
                    numbers=read_numbers if is_miscounted else None,
                    absent=row.absent(_OPTIONAL),
                    null=row.nulls(_OPTIONAL),
                    turns=turn_keys(row, ("prompt",)),
                ),
            )

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row a case of two tiers; other cases are counted and not written."""
        ids = SubsetIds(dropped)
        for case in cases:
            count_lost(case, dropped, self.supports)
            sides = sides_of(case, dropped)
            if sides.better:
                form = form_of(case, self._kind)
                yield with_meta(_row(case, sides, form, ids, dropped), case, self.keys, dropped)


def _numbers(num_chosen: int, num_rejected: int) -> dict[str, int]:
    return dict(zip(_NUMBERS, (num_chosen, num_rejected, num_chosen + num_rejected), strict=True))


def _authors(row: Row, number: int) -> tuple[list[str | None], Any]:
    """Return an author for each answer, and ``models`` itself where it does not name them one by one."""
    models = row.value.get("models")
    if (
        isinstance(models, list)
        and len(models) == number
        and all(model is None or isinstance(model, str) for model in models)
        and any(model is not None for model in models)
    ):
        return models, None
    return [None] * number, models


def _row(case: Case, sides: RankedSides, form: JsonObject, ids: SubsetIds, dropped: Counter[str]) -> JsonObject:
    models = [response.author for side in sides for response in side]
    row: JsonObject = {
        "id": ids.take(form.get("id", case.prompt.id), case.prompt.subset or ""),
        "prompt": text_or_list(case.prompt.messages, "user", as_list="prompt" in form.get("turns", ())),
        **{key: [answer_text(response, dropped) for response in side] for key, side in zip(SIDES, sides, strict=True)},
        **_numbers(*map(len, sides)),
        **form.get("numbers", {}),
        "models": models if any(models) else form.get("models", []),
        "subset": case.prompt.subset or "",
    }
    silent = {key for key in form.get("absent", ()) if key != "models" or not row["models"]}
    nulls = {key: None for key in form.get("null", ()) if key != "models" or not any(models)}
    return with_nulls({key: value for key, value in row.items() if key not in silent} | nulls, form)


KINDS = {
    "rewardbench": without_settings(
        RewardBench(),
        "RewardBench v1 rows: a prompt, a chosen and a rejected answer with their models, a subset and an id.",
    ),
    "rewardbench2": without_settings(
        RewardBench2(), "RewardBench 2 rows: a prompt, lists of right and wrong answers, and a subset."
    ),
}
