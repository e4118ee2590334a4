"""PandaLM's test set: two responses to an instruction, the votes of three people, and verdicts of language models.

Written from the published files in the repository WeOpenML/PandaLM (``data/testset-v1.json`` and the verdicts beside
it). A vote is 1 (the first is better), 2 (the second) or 0 (equal); ``cmp_key`` names both models. The verdicts of
GPT-3.5 (``gpt_result``: ``1``, ``2``, ``Tie``; ``garbage`` could not be read) and of PandaLM-7B (``pandalm_result``)
stand in files of their own, joined by ``idx``: rows that have been joined are read with all of their evidence. Some
answers are the JSON value true where the model wrote the word: they are read as ``True``, and counted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Judgment, Message, Response
from steelyard.plugins.formats._fields import PromptIds, as_read, rest, text_field, with_prompt
from steelyard.plugins.formats._pandalm import (
    ANNOTATORS,
    KEYS,
    KIND,
    MODELS,
    SIDES,
    VERDICTS,
    authors_of,
    pandalm_row,
)
from steelyard.plugins.formats._parts import carrying


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class PandaLm:
    """A row a prompt with two responses; people are ``annotator1`` and so on."""

    keys = KEYS
    carries = carrying("prompt ids", "prompt meta", "authors", "judgments")

    def recognises(self, row: dict[str, Any]) -> bool:
        """An instruction, two responses, and a vote or a verdict."""
        evidence = {*ANNOTATORS, *(f"{prefix}_result" for prefix in MODELS)}
        return {"instruction", "input", *SIDES} <= row.keys() and not evidence.isdisjoint(row)

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two responses with judgments."""
        ids = PromptIds(noted)
        for row in rows:
            instruction, extra = text_field(row, "instruction"), text_field(row, "input")
            text = "\n".join(part for part in (instruction, extra) if part)
            given, key = row.value.get("idx"), row.value.get("cmp_key")
            authors = authors_of(key) if isinstance(key, str) else (None, None)
            words = [_word(row, side, noted) for side in SIDES]
            yield Case(
                prompt=with_prompt(
                    (Message(role="user", content=text),),
                    id=ids.made(row) if given is None else ids.given(str(given), row),
                    meta=rest(row, KEYS),
                ),
                responses=tuple(
                    Response(id=side, text=word, author=author)
                    for side, word, author in zip(SIDES, words, authors, strict=True)
                ),
                judgments=(*_votes(row), *_verdicts(row)),
                meta=as_read(
                    KIND,
                    idx=given,
                    input=extra,
                    cmp_key=key if authors == (None, None) else None,
                    words=[side for side in SIDES if isinstance(row.value[side], bool)],
                    absent=[name for name in ("idx", "cmp_key") if name not in row.value],
                    null=[name for name in KEYS if name in row.value and row.value[name] is None],
                ),
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a case of two responses; other cases are counted and not written."""
        for case in cases:
            row = pandalm_row(case, lost, self.carries)
            if row is not None:
                yield row


def build(config: Config) -> PandaLm:
    """The format."""
    return PandaLm()


def _word(row: Row, side: str, noted: Counter[str]) -> str:
    if isinstance(row.value.get(side), bool):
        noted["answers that are true or false, not texts"] += 1
        return str(row.value[side])
    return text_field(row, side)


def _votes(row: Row) -> Iterator[Judgment]:
    for name in ANNOTATORS:
        if row.value.get(name) is not None:
            verdict = VERDICTS.get(str(row.value[name]).lower())
            if verdict is None or verdict == "none":
                raise RecordError(
                    f"unknown vote {row.value[name]!r}", where=row.place._replace(path=name), allowed="1, 2, or 0 (tie)"
                )
            yield Judgment(left=SIDES[0], right=SIDES[1], verdict=verdict, judge=name, kind="human")


def _verdicts(row: Row) -> Iterator[Judgment]:
    for prefix, judge in MODELS.items():
        said = row.value.get(f"{prefix}_result")
        if said is None:
            continue
        verdict = VERDICTS.get(str(said).lower())
        if verdict is None:
            where = row.place._replace(path=f"{prefix}_result")
            raise RecordError(f"unknown verdict {said!r}", where=where, allowed="1, 2, Tie (or 0), garbage")
        reason, reference = (row.value.get(f"{prefix}_{name}") for name in ("reason", "reference"))
        if not isinstance(reason, str | None):
            raise RecordError("a reason that is no text", where=row.place._replace(path=f"{prefix}_reason"))
        meta = {"result": said} | {
            name: value for name, value in (("reason", reason), ("reference", reference)) if value is not None
        }
        yield Judgment(
            left=SIDES[0],
            right=SIDES[1],
            verdict=verdict,
            judge=judge,
            kind="llm",
            reason=str(said) if verdict == "none" else reason,
            meta=meta if verdict == "none" else {name: meta[name] for name in meta if name != "reason"},
        )
