"""TRL preference pairs: an explicit ``prompt``, or one that stands inside both ``chosen`` and ``rejected``.

Written from the dataset-formats page of TRL's documentation. The answers are texts or turns. An implicit prompt is the
longest common run of turns; of texts, the longest common beginning, cut back to the last assistant mark in it (a blank
line and ``Assistant:``), or else to the last line break after which both still say something. Where nothing is common,
the row is refused, not guessed; a cut at a line break is counted, for it can fall inside what both answers begin with.
A ``prompt`` of text beside two whole conversations is a title of them: the prompt is their common turns, as in TRL.
"""

import os.path
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_turns,
    as_read,
    as_turns,
    count_other_keys,
    form_of,
    is_number,
    nulls_of,
    rest,
    turn_keys,
    turns_of,
    with_meta,
    with_nulls,
    with_prompt,
)
from steelyard.plugins.formats._pairwise import pair_case, pair_rows
from steelyard.plugins.formats._parts import carrying_pairs

_KEYS = ("prompt", "chosen", "rejected", "margin")
_KIND = "trl"
_MARK = "\n\nAssistant:"


class Config(BaseConfig, frozen=True):
    """``implicit`` writes the prompt inside both answers, instead of under ``prompt``."""

    implicit: bool = False


class _Parts(NamedTuple):
    prompt: tuple[Message, ...]
    chosen: tuple[Message, ...]
    rejected: tuple[Message, ...]


class Trl:
    """One row a pair; ``margin`` becomes a listed pair."""

    keys = _KEYS
    carries = carrying_pairs("margins", "answers of several turns")

    def __init__(self, config: Config) -> None:
        self.config = config

    def recognises(self, row: dict[str, Any]) -> bool:
        """Two answers, each a text or turns."""
        return {"chosen", "rejected"} <= row.keys() and not _is_many(row)

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two tiers."""
        ids = PromptIds(noted)
        for row in rows:
            is_inside = "prompt" not in row.value or _is_titled(row)
            parts = _implicit(row, noted) if is_inside else _explicit(row)
            for key in _Parts._fields:
                count_other_keys(row.value.get(key), ("role", "content"), noted)
            margin = row.value.get("margin")
            if margin is not None and not is_number(margin):
                raise RecordError("a margin that is no number", where=row.place._replace(path="margin"))
            meta = as_read(
                _KIND,
                turns=turn_keys(row, _KEYS),
                implicit=is_inside,
                title=row.value.get("prompt") if is_inside else None,
                null=nulls_of(row, ("margin",)),
            )
            prompt = with_prompt(parts.prompt, id=ids.made(row), meta=rest(row, _KEYS))
            answers = (parts.chosen, parts.rejected)
            yield pair_case(prompt, answers, noted, margin=None if margin is None else float(margin), meta=meta)

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a pair: texts where a prompt is one user turn and both answers are texts, else turns."""
        for case in cases:
            form = form_of(case, _KIND)
            for better, worse, pair in pair_rows(case, lost, self.carries):
                parts = _Parts(case.prompt.messages, answer_turns(better), answer_turns(worse))
                is_implicit = form.get("implicit", False) or self.config.implicit
                row = _implicit_row(parts, form, lost) if is_implicit else _explicit_row(parts, form)
                row = {"prompt": form["title"]} | row if "title" in form and not self.config.implicit else row
                margin = {"margin": pair.margin} if case.pairs is not None else {}
                yield with_meta(with_nulls(row | margin, form), case, _KEYS, lost)


def build(config: Config) -> Trl:
    """The format."""
    return Trl(config)


def _is_many(row: dict[str, Any]) -> bool:
    """Whether ``chosen`` lists several answers (texts), as other benchmarks do, rather than turns."""
    return isinstance(row["chosen"], list) and all(isinstance(item, str) for item in row["chosen"])


def _explicit(row: Row) -> _Parts:
    prompt = turns_of(row.value["prompt"], row.place, "prompt", role="user")
    chosen, rejected = (
        turns_of(row.value.get(key), row.place, key, role="assistant") for key in ("chosen", "rejected")
    )
    return _Parts(prompt, chosen, rejected)


def _is_titled(row: Row) -> bool:
    """Whether the prompt is a text, and both answers are conversations that begin before the answer."""
    answers = [row.value.get(key) for key in ("chosen", "rejected")]
    return isinstance(row.value["prompt"], str) and all(
        isinstance(turns, list)
        and len(turns) > 1
        and isinstance(turns[0], dict)
        and turns[0].get("role") != "assistant"
        for turns in answers
    )


def _implicit(row: Row, noted: Counter[str]) -> _Parts:
    chosen, rejected = row.value.get("chosen"), row.value.get("rejected")
    if isinstance(chosen, str) and isinstance(rejected, str):
        common = os.path.commonprefix([chosen, rejected])  # noqa: RUF071  characters are what is meant
        at = common.rfind(_MARK)
        end = at + len(_MARK) if at >= 0 else common[: min(map(len, (chosen, rejected))) - 1].rfind("\n") + 1
        if end <= 0:
            raise RecordError(
                "chosen and rejected share no prompt",
                where=row.place,
                do="give the prompt its own key, of the same form",
            )
        noted["prompts cut at a line break, not at a turn"] += at < 0
        # The texts keep their marks: what is written again is what was read.
        return _Parts(*(turns_of(text, row.place, "chosen", role=role) for text, role in (
            (common[:end], "user"), (chosen[end:], "assistant"), (rejected[end:], "assistant"))))  # fmt: skip
    turns = [
        turns_of(value, row.place, key, role="assistant") for key, value in (("chosen", chosen), ("rejected", rejected))
    ]
    length = 0
    # At least one turn stays on either side: it is the answer.
    while length < min(map(len, turns)) - 1 and turns[0][length] == turns[1][length]:
        length += 1
    if length == 0:
        raise RecordError(
            "chosen and rejected share no turn", where=row.place, do="give the prompt its own key, of the same form"
        )
    return _Parts(turns[0][:length], turns[0][length:], turns[1][length:])


def _is_text(key: str, turns: Sequence[Message]) -> bool:
    return len(turns) == 1 and turns[0].role == ("user" if key == "prompt" else "assistant")


def _explicit_row(parts: _Parts, form: dict[str, Any]) -> dict[str, Any]:
    """Each part as it was read; otherwise texts where all three can be texts, else turns."""
    values = parts._asdict()
    is_text = {key: _is_text(key, turns) for key, turns in values.items()}
    as_lists = form.get("turns") or (() if all(is_text.values()) else tuple(values))
    return {
        key: turns[0].content if is_text[key] and key not in as_lists else as_turns(turns)
        for key, turns in values.items()
    }


def _implicit_row(parts: _Parts, form: dict[str, Any], lost: Counter[str]) -> dict[str, Any]:
    """The prompt inside both answers, as texts or else as turns; apart where neither would be read as it was meant."""
    values = parts._asdict()
    forms: list[dict[str, Any]] = []
    if "chosen" not in form.get("turns", ()) and all(_is_text(key, turns) for key, turns in values.items()):
        prompt, chosen, rejected = (turns[0].content for turns in parts)
        forms.append({"chosen": prompt + chosen, "rejected": prompt + rejected})
    forms.append({key: as_turns(parts.prompt + values[key]) for key in ("chosen", "rejected")})
    for row in forms:
        try:
            if _implicit(Row(Place("the row to write"), row), Counter()) == parts:
                return row
        except RecordError:
            continue
    lost["prompts inside the answers"] += 1
    return _explicit_row(parts, form)
