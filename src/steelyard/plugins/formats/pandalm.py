"""PandaLM's test set: two responses to an instruction, the votes of three people, and verdicts of language models.

Written from the published files in the repository WeOpenML/PandaLM (``data/testset-v1.json`` and the verdicts beside
it). A vote is 1 (the first is better), 2 (the second) or 0 (equal); ``cmp_key`` names both models. The verdicts of
GPT-3.5 (``gpt_result``: ``1``, ``2``, ``Tie``; ``garbage`` could not be read) and of PandaLM-7B (``pandalm_result``)
are in separate files, joined by ``idx``: rows that have been joined are read with all of their evidence. Some
answers are the JSON value true where the model wrote the word: they are read as ``True``, and counted.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Judgment, Message, Response, Verdict
from steelyard.curation.format_support import UNKNOWN, carrying, count_lost
from steelyard.plugins.formats._conversations import conversation_of
from steelyard.plugins.formats._fields import (
    OTHER_SHAPE,
    PromptIds,
    answer_text,
    as_read,
    form_of,
    with_meta,
    with_prompt,
)

KIND = "pandalm"
SIDES = ("response1", "response2")
ANNOTATORS = tuple(f"annotator{number}" for number in range(1, 10))
MODELS = {"gpt": "gpt-3.5-turbo", "pandalm": "pandalm-7b"}
"""The language models of the published verdicts, by the beginning of their keys."""
KEYS = (
    "idx", "cmp_key", "instruction", "input", *SIDES, *ANNOTATORS,
    *(f"{prefix}_{name}" for prefix in MODELS for name in ("result", "reason", "reference")),
)  # fmt: skip
VERDICTS: dict[str, Verdict] = {"1": "left", "2": "right", "0": "tie", "tie": "tie", "garbage": "none"}
_VOTES: dict[Verdict, int] = {"left": 1, "right": 2, "tie": 0}
_BETWEEN = "_"


class PandaLm:
    """A row a prompt with two responses; people are ``annotator1`` and so on."""

    keys = KEYS
    supports = carrying("prompt ids", "prompt meta", "authors", "judgments")

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has an instruction, two responses, and a vote or a verdict."""
        evidence = {*ANNOTATORS, *(f"{prefix}_result" for prefix in MODELS)}
        return {"instruction", "input", *SIDES} <= row.keys() and not evidence.isdisjoint(row)

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases of two responses with judgments."""
        ids = PromptIds(warnings)
        for row in rows:
            instruction, extra = row.text("instruction"), row.text("input")
            text = "\n".join(part for part in (instruction, extra) if part)
            row_id, key = row.value.get("idx"), row.value.get("cmp_key")
            authors = authors_of(key) if isinstance(key, str) else (None, None)
            words = [_word(row, side, warnings) for side in SIDES]
            yield Case(
                prompt=with_prompt(
                    (Message(role="user", content=text),),
                    id=ids.take(row, None if row_id is None else str(row_id)),
                    meta=row.others(KEYS),
                ),
                responses=tuple(
                    Response(id=side, text=word, author=author)
                    for side, word, author in zip(SIDES, words, authors, strict=True)
                ),
                judgments=(*_votes(row), *_verdicts(row)),
                meta=as_read(
                    KIND,
                    idx=row_id,
                    input=extra,
                    cmp_key=key if authors == (None, None) else None,
                    words=[side for side in SIDES if isinstance(row.value[side], bool)],
                    absent=[name for name in ("idx", "cmp_key") if name not in row.value],
                    null=[name for name in KEYS if name in row.value and row.value[name] is None],
                ),
            )

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row a case of two responses; other cases are counted and not written."""
        for case in cases:
            row = pandalm_row(case, dropped, self.supports)
            if row is not None:
                yield row


def _word(row: Row, side: str, warnings: Counter[str]) -> str:
    if isinstance(row.value.get(side), bool):
        warnings["answers that are true or false, not texts"] += 1
        return str(row.value[side])
    return row.text(side)


def _votes(row: Row) -> Iterator[Judgment]:
    for name in ANNOTATORS:
        if row.value.get(name) is not None:
            verdict = VERDICTS.get(str(row.value[name]).lower())
            if verdict is None or verdict == "none":
                raise RecordError(f"unknown vote {row.value[name]!r}", where=row.at(name), allowed="1, 2, or 0 (tie)")
            yield Judgment(left=SIDES[0], right=SIDES[1], verdict=verdict, judge=name, kind="human")


def _verdicts(row: Row) -> Iterator[Judgment]:
    for prefix, judge in MODELS.items():
        result = row.value.get(f"{prefix}_result")
        if result is None:
            continue
        verdict = VERDICTS.get(str(result).lower())
        if verdict is None:
            where = row.at(f"{prefix}_result")
            raise RecordError(f"unknown verdict {result!r}", where=where, allowed="1, 2, Tie (or 0), garbage")
        reason, reference = (row.value.get(f"{prefix}_{name}") for name in ("reason", "reference"))
        if not isinstance(reason, str | None):
            raise RecordError("a reason that is not a text", where=row.at(f"{prefix}_reason"))
        meta = {"result": result} | {
            name: value for name, value in (("reason", reason), ("reference", reference)) if value is not None
        }
        yield Judgment(
            left=SIDES[0],
            right=SIDES[1],
            verdict=verdict,
            judge=judge,
            kind="llm",
            reason=str(result) if verdict == "none" else reason,
            meta=meta if verdict == "none" else {name: meta[name] for name in meta if name != "reason"},
        )


def authors_of(key: str) -> tuple[str | None, str | None]:
    """Return the two models of a ``cmp_key``; null where it is not two names with one underline between."""
    first, between, second = key.partition(_BETWEEN)
    return (first, second) if between and first and second and _BETWEEN not in second else (None, None)


def pandalm_row(case: Case, dropped: Counter[str], supports: Collection[str]) -> JsonObject | None:
    """Return the case as a row; null for a case that is not of two responses, which is counted."""
    form, prompt = form_of(case, KIND), case.prompt
    count_lost(_without_own_judges(case), dropped, supports)
    if len(case.responses) != len(SIDES):
        dropped[OTHER_SHAPE] += 1
        return None
    question, extra = conversation_of(prompt.messages, dropped).question_apart(form.get("input", ""))
    texts = [answer_text(response, dropped) for response in case.responses]
    words = {"True": True, "False": False}
    row_id, key = form.get("idx"), _compared(case, form, dropped)
    row = {
        "idx": row_id if str(row_id) == prompt.id else prompt.id,
        **({} if key is None else {"cmp_key": key}),
        "instruction": question,
        "input": extra,
        **{
            side: words.get(text, text) if side in form.get("words", ()) else text
            for side, text in zip(SIDES, texts, strict=True)
        },
        **_evidence(case, dropped),
    }
    row = {name: value for name, value in row.items() if name not in form.get("absent", ()) or name == "cmp_key"}
    nulls = {name: None for name in form.get("null", ()) if name == "idx" or name not in row}
    return with_meta(row | nulls, case, KEYS, dropped)


def _compared(case: Case, form: JsonObject, dropped: Counter[str]) -> Any:
    authors = [response.author for response in case.responses]
    if not any(authors):
        return form.get("cmp_key")
    key = _BETWEEN.join(author or UNKNOWN for author in authors)
    if list(authors_of(key)) != authors:
        dropped["authors that a pair of names cannot say"] += 1
    return key


def _evidence(case: Case, dropped: Counter[str]) -> JsonObject:
    """Return votes under their own columns, other people's under free ones, and verdicts of the two known models."""
    row: JsonObject = {}
    first = case.responses[0].id
    prefixes = {judge: prefix for prefix, judge in MODELS.items()}
    people = [judgment for judgment in case.judgments if judgment.kind == "human"]
    # Those whose column is known take it before the others look for a free one.
    for judgment in sorted(people, key=lambda one: one.judge not in ANNOTATORS):
        names = [judgment.judge, *ANNOTATORS] if judgment.judge in ANNOTATORS else ANNOTATORS
        free = next((name for name in names if name not in row), None)
        vote = _VOTES.get(_from(first, judgment))
        if vote is None or free is None:
            dropped["votes without a verdict or a column"] += 1
        else:
            row[free] = vote
    for judgment in case.judgments:
        prefix = prefixes.get(judgment.judge)
        if judgment.kind == "human":
            continue
        if prefix is None or f"{prefix}_result" in row:
            dropped["judgments of other judges"] += 1
        else:
            row |= _verdict(prefix, judgment, first)
    return row


def _from(first: str, judgment: Judgment) -> Verdict:
    """Return the verdict as seen from the first response."""
    if judgment.left == first:
        return judgment.verdict
    turned: dict[Verdict, Verdict] = {"left": "right", "right": "left"}
    return turned.get(judgment.verdict, judgment.verdict)


def _verdict(prefix: str, judgment: Judgment, first: str) -> JsonObject:
    meta, verdict = judgment.meta or {}, _from(first, judgment)
    read_result = meta.get("result")
    fresh: Any = "garbage" if verdict == "none" else _VOTES[verdict]
    if prefix == "gpt" and verdict != "none":
        fresh = "Tie" if verdict == "tie" else str(fresh)
    reason = meta.get("reason") if verdict == "none" else judgment.reason
    values = {
        "result": read_result if VERDICTS.get(str(read_result).lower()) == verdict else fresh,
        "reason": reason,
        "reference": meta.get("reference"),
    }
    return {f"{prefix}_{name}": value for name, value in values.items() if value is not None}


def _without_own_judges(case: Case) -> Case:
    """Return the case without what the columns say of its judges: what is left of judges is lost."""
    known = {*((name, "human") for name in ANNOTATORS), *((name, "llm") for name in MODELS.values())}
    judgments = tuple(
        replace(judgment, judge=UNKNOWN, kind="human", reason=None)
        if (judgment.judge, judgment.kind) in known
        else judgment
        for judgment in case.judgments
    )
    return replace(case, judgments=judgments)


KINDS = {"pandalm": without_settings(PandaLm(), __doc__)}
