"""Benchmarks of better and worse answers in one row: RewardBench 1 and 2, M-RewardBench and RM-Bench.

RewardBench 1 is written from the public description of allenai/reward-bench's data. Ids repeat across subsets there, so
a case's id is ``SUBSET/ID``; the row's own id comes back out. M-RewardBench's rows (``language``, ``source``) are read
as well. Two whole conversations under ``chosen`` and ``rejected``, as in training data, hold the prompt.

RewardBench 2 is written from the dataset card of allenai/reward-bench-2: ``chosen`` has one answer, several in the
subset Ties; ``models`` names the authors of the chosen and then of the rejected answers. In Ties an id is ``ref:N`` (a
single right answer) or ``tied:N`` (several). The ranking has two tiers, and the bench's question, whether a right
answer scores above every wrong one, concerns the pairs across them. ``additional_metadata`` is another key of the row,
and goes into the prompt's ``meta``.

RM-Bench is written from the description of the data in the repository THU-KEG/RM-Bench: the place in ``chosen`` and
``rejected`` is the style: concise, detailed in plain text, detailed in Markdown. All nine pairs of one right and one
wrong answer count in its accuracy matrix (rows are the style of the right one): the diagonal is its normal accuracy,
the pairs whose wrong answer has the plainer style its easy accuracy, the others its hard accuracy. The style is in each
response's ``meta``; the domain is the prompt's subset, and a case's id is ``DOMAIN/ID``. The files of one domain name
none, but the source of each prompt (``subset``): that stays a key of the row, and the id is ``SUBSET/ID``.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Message
from steelyard.curation.format_support import carrying, carrying_pairs
from steelyard.plugins.formats._pairs import SIDES, TITLES, pair_rows, shared_turns
from steelyard.plugins.formats._row_format import (
    CaseReader,
    RowFormat,
)
from steelyard.plugins.formats._turns import are_conversations, text_or_list

_TURN_KEYS = ("prompt", *SIDES)
_NUMBERS = ("num_correct", "num_rejected", "total_completions")
_OPTIONAL = ("id", *_NUMBERS, "models")
STYLES = ("concise", "detailed", "markdown")


# RewardBench 1: one pair a row, two responses named ``chosen`` and ``rejected``


def _parse_pair(reader: CaseReader) -> Case:
    row = reader.row
    subset_key = "source" if "source" in row.value and "subset" not in row.value else "subset"
    subset = row.text(subset_key)
    row_id, language = row.value.get("id"), row.optional_text("language")
    # One item in several languages has one id; within a language ids are unique.
    name = reader.ids.take(row, None if row_id is None else f"{subset}/{row_id}", language=language)
    messages, meta = reader.turns("prompt", "user"), row.others((*_PAIR.keys, subset_key))
    answers: Sequence[Sequence[Message]] = [reader.turns(side, "assistant") for side in SIDES]
    if are_conversations([row.value[side] for side in SIDES]):
        messages, *answers = shared_turns(row)
        reader.warnings[TITLES] += 1
    authors = [row.optional_text(f"{side}_model") for side in SIDES]
    return Case(
        prompt=reader.prompt(messages, id=name, subset=subset, language=language, meta=meta),
        responses=reader.responses(answers, ids=SIDES, authors=authors),
        ranking=tuple((side,) for side in SIDES),
        meta=reader.meta(id=row_id, subset=subset_key if subset_key != "subset" else None),
    )


def _pair_rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row per pair; a case of several pairs repeats its prompt under different ids."""
    prompt, lists = case.prompt, form.get("turns", ())
    row_id = form.get("id", prompt.id)
    pairs = list(pair_rows(case, dropped, _PAIR.supports))
    for number, pair in enumerate(pairs):
        texts = {
            key: text_or_list(turns, "user" if key == "prompt" else "assistant", as_list=key in lists)
            for key, turns in zip(_TURN_KEYS, pair.turns(case), strict=True)
        }
        yield {
            "id": row_id if len(pairs) == 1 else f"{row_id}-{number}",
            "prompt": texts["prompt"],
            "chosen": texts["chosen"],
            "chosen_model": pair.better.author,
            "rejected": texts["rejected"],
            "rejected_model": pair.worse.author,
            form.get("subset", "subset"): prompt.subset or "",
            **({"language": prompt.language} if prompt.language else {}),
        }


_PAIR = RowFormat(
    kind="rewardbench",
    keys=(*_TURN_KEYS, "chosen_model", "rejected_model", "subset", "id", "language"),
    supports=carrying_pairs("language", "subset", "authors", "answers of several turns"),
    # M-RewardBench calls the subset ``source``.
    matches=lambda row: (
        {*_TURN_KEYS, "chosen_model", "rejected_model"} <= row.keys() and ("subset" in row or "source" in row)
    ),
    parse=_parse_pair,
    rows_of=_pair_rows,
    null_keys=("language",),
    list_keys=_TURN_KEYS,
    id_scope=lambda prompt: (prompt.subset, prompt.language),
)


# Lists of right and of wrong answers, shared by RewardBench 2 and RM-Bench


def are_texts(value: Any) -> bool:
    """Return whether the value is a list of one text or more."""
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)


def texts_field(row: Row, key: str) -> tuple[str, ...]:
    """Return the texts listed under the key, one or more. Raises RecordError for anything else."""
    texts = row.items(key)
    if not texts or not are_texts(texts):
        problem = f"{key!r} holds no answer" if not texts else f"{key!r} holds an answer that is not a text"
        raise RecordError(problem, where=row.at(key), allowed=f"{key}: one text or more")
    return tuple(texts)


# RewardBench 2


def _parse_lists(reader: CaseReader) -> Case:
    row = reader.row
    subset, row_id = row.text("subset"), row.value.get("id")
    texts = {side: texts_field(row, side) for side in SIDES}
    authors = _authors(row, sum(map(len, texts.values())))
    names = {side: tuple(f"{side}-{number}" for number, _ in enumerate(texts[side], 1)) for side in SIDES}
    num_chosen, num_rejected = map(len, texts.values())
    numbers: dict[str, int] = dict(zip(_NUMBERS, (num_chosen, num_rejected, num_chosen + num_rejected), strict=True))
    read_numbers = {key: row.value[key] for key in _NUMBERS if row.value.get(key) is not None}
    is_miscounted = any(number != numbers[key] for key, number in read_numbers.items())
    reader.warnings["counts that differ from those of the answers"] += is_miscounted
    name = None if row_id is None else f"{subset}/{row_id}"
    return Case(
        prompt=reader.prompt(reader.turns("prompt", "user"), name=name, subset=subset),
        responses=reader.responses(sum(texts.values(), ()), ids=sum(names.values(), ()), authors=authors),
        ranking=tuple(names.values()),
    )


def _authors(row: Row, number: int) -> list[str | None]:
    """Return an author for each answer, null where ``models`` does not name them one by one."""
    models = row.value.get("models")
    if (
        isinstance(models, list)
        and len(models) == number
        and all(model is None or isinstance(model, str) for model in models)
        and any(model is not None for model in models)
    ):
        return models
    return [None] * number


_LISTS = RowFormat(
    kind="rewardbench2",
    keys=("prompt", *SIDES, "subset", *_OPTIONAL),
    supports=carrying(
        "system turns", "earlier turns", "subset", "prompt meta", "authors", "rankings", "ties",
        "more than two responses",
    ),
    matches=lambda row: (
        {"prompt", "subset"} <= row.keys()
        and any(key in row for key in (*_NUMBERS, "models"))
        and all(are_texts(row.get(side)) for side in SIDES)
    ),
    parse=_parse_lists,
    turn_keys=("prompt",),
)  # fmt: skip


# RM-Bench: three answers on each side, one per style


def _parse_styles(reader: CaseReader) -> Case:
    row = reader.row
    texts = {side: texts_field(row, side) for side in SIDES}
    for side, answers in texts.items():
        if len(answers) != len(STYLES):
            where = row.at(side)
            raise RecordError(f"{len(answers)} answers in {side!r}", where=where, allowed="three, one per style")
    has_domain = "domain" in row.value or "subset" not in row.value
    domain, row_id = row.text("domain" if has_domain else "subset"), row.value.get("id")
    name = None if row_id is None else f"{domain}/{row_id}"
    return Case(
        prompt=reader.prompt(reader.turns("prompt", "user"), name=name, subset=domain if has_domain else None),
        responses=reader.responses(
            sum(texts.values(), ()),
            ids=[f"{side}-{style}" for side in SIDES for style in STYLES],
            metas=[{"style": style} for _ in SIDES for style in STYLES],
        ),
        ranking=tuple(tuple(f"{side}-{style}" for style in STYLES) for side in SIDES),
    )


_STYLED = RowFormat(
    kind="rm_bench",
    keys=("id", *_TURN_KEYS, "domain"),
    supports=carrying(
        "system turns", "earlier turns", "subset", "prompt meta", "rankings", "ties", "more than two responses"
    ),
    matches=lambda row: (
        "prompt" in row
        and ("domain" in row or ("subset" in row and "num_correct" not in row))
        and all(are_texts(row.get(side)) and len(row[side]) == len(STYLES) for side in SIDES)
    ),
    parse=_parse_styles,
    turn_keys=("prompt",),
)

KINDS = {
    "rewardbench": without_settings(
        _PAIR, "RewardBench v1 rows: a prompt, a chosen and a rejected answer with their models, a subset and an id."
    ),
    "rewardbench2": without_settings(
        _LISTS, "RewardBench 2 rows: a prompt, lists of right and wrong answers, and a subset."
    ),
    "rm_bench": without_settings(
        _STYLED, "RM-Bench rows: a prompt, three right and three wrong answers in the same three styles, and a domain."
    ),
}
