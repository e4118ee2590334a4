"""AlpacaEval and PandaLM: outputs of models to an instruction, with the verdicts of people and of language models.

AlpacaEval is written from the example outputs, the published annotations and the README in the repository
tatsu-lab/alpaca_eval. A preference is 1 (the first is better), 2 (the second), 1.5 (equal), a number between them from
a weighted annotator, or null where none could be read; the number is kept. ``annotator`` names a language model; the
crowd's annotations have ``annotator_index`` instead (that file itself could not be read). ``dataset`` is the prompt's
subset.

PandaLM's test set is written from the published files in the repository WeOpenML/PandaLM (``data/testset-v1.json`` and
its files of verdicts). A vote is 1 (the first is better), 2 (the second) or 0 (equal); ``cmp_key`` names both models.
The verdicts of GPT-3.5 (``gpt_result``: ``1``, ``2``, ``Tie``; ``garbage`` could not be read) and of PandaLM-7B
(``pandalm_result``) are in separate files, joined by ``idx``: rows that have been joined are read with all of their
evidence. Some answers are the JSON value true where the model wrote the word: they are read as ``True``, and counted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Judgment, Message, Response, Verdict
from steelyard.curation.evidence_rows import text_id
from steelyard.curation.format_support import carrying, count_lost
from steelyard.plugins.formats._rows import OTHER_SHAPE, CaseReader, RowFormat, present, verdict_from, with_each
from steelyard.plugins.formats._turns import answer_text, conversation_of

_COSTS = ("price_per_example", "time_per_example")
_JUDGED = ("annotator", "annotator_index", "preference", *_COSTS)
_PREFERENCES: dict[Verdict, float | None] = {"left": 1, "right": 2, "tie": 1.5, "none": None}

_SIDES = ("response1", "response2")
_ANNOTATORS = tuple(f"annotator{number}" for number in range(1, 10))
_MODELS = {"gpt": "gpt-3.5-turbo", "pandalm": "pandalm-7b"}
"""The language models of PandaLM's published verdicts, by the beginning of their keys."""
_VERDICTS: dict[str, Verdict] = {"1": "left", "2": "right", "0": "tie", "tie": "tie", "garbage": "none"}
_VOTES: dict[Verdict, int] = {"left": 1, "right": 2, "tie": 0}
_BETWEEN = "_"


# AlpacaEval: a row per judgment; a row per response where a case has no judgments


def _parse_alpaca(reader: CaseReader) -> Case:
    row = reader.row
    is_pair = "output_1" in row.value or "output_2" in row.value
    ends = ["_1", "_2"] if is_pair else [""]
    answers = [row.text(f"output{end}") for end in ends]
    authors = [row.optional_text(f"generator{end}") for end in ends]
    responses = reader.responses(answers, authors=authors)
    # AlpacaFarm's annotations have the input of an instruction apart.
    extra, subset = row.text("input", default=""), row.optional_text("dataset")
    question = "\n".join(filter(None, (row.text("instruction"), extra)))
    optional = ["dataset", *(f"generator{end}" for end in ends), *(_JUDGED if is_pair else ())]
    # The keys of a verdict are other keys of a row without one.
    meta = row.others([key for key in reader.keys if is_pair or key not in _JUDGED])
    has_number = isinstance(row.value.get("annotator_index"), int) and is_pair
    return Case(
        prompt=reader.prompt(question, id=text_id([Message(role="user", content=question)]), subset=subset, meta=meta),
        responses=responses,
        judgments=(_preference(row, [response.id for response in responses]),) if is_pair else (),
        meta=reader.meta(null=row.nulls(optional), number=has_number, input=row.value.get("input")),
    )


def _preference(row: Row, names: Sequence[str]) -> Judgment:
    preference = row.value.get("preference")
    if preference is not None and not (is_number(preference) and 1 <= preference <= 2):
        problem, where = f"unknown preference {preference!r}", row.at("preference")
        raise RecordError(problem, where=where, allowed="a number from 1 to 2, or null")
    verdict = _preferred_verdict(preference)
    annotator, index = row.optional_text("annotator"), row.value.get("annotator_index")
    if index is not None and (isinstance(index, bool) or not isinstance(index, str | int)):
        raise RecordError("an index that is not a whole number", where=row.at("annotator_index"))
    meta = {key: row.value[key] for key in _COSTS if row.value.get(key) is not None}
    if preference != _PREFERENCES[verdict]:
        meta["preference"] = preference
    if annotator is not None and index is not None:
        meta["annotator_index"] = index
    return Judgment(
        left=names[0],
        right=names[1],
        verdict=verdict,
        judge=annotator or (UNKNOWN_JUDGE if index is None else str(index)),
        kind="human" if annotator is None else "llm",
        reason="no preference" if verdict == "none" else None,
        meta=meta or None,
    )


def _preferred_verdict(preference: Any) -> Verdict:
    if preference is None:
        return "none"
    return "tie" if preference == 1.5 else "left" if preference < 1.5 else "right"


def _alpaca_rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield rows of annotations, or of outputs for a case without judgments."""
    count_lost(case, dropped, _ALPACA_EVAL.supports)
    question, extra = conversation_of(case.prompt.messages, dropped).question_apart(form.get("input") or "")
    row = {"instruction": question} | ({"input": extra} if "input" in form else {})
    subset = present({"dataset": case.prompt.subset})
    by_id = {response.id: response for response in case.responses}
    for response in case.responses if not case.judgments else ():
        yield row | _output(response, "", dropped) | subset
    if case.judgments:
        ends = {name for judgment in case.judgments for name in (judgment.left, judgment.right)}
        dropped["responses in no judgment"] += len(by_id.keys() - ends)
    for judgment in case.judgments:
        outputs = _output(by_id[judgment.left], "_1", dropped) | _output(by_id[judgment.right], "_2", dropped)
        yield row | outputs | _judgment_fields(judgment, form, dropped) | subset


def _output(response: Response, end: str, dropped: Counter[str]) -> JsonObject:
    return present({f"output{end}": answer_text(response, dropped), f"generator{end}": response.author})


def _judgment_fields(judgment: Judgment, form: JsonObject, dropped: Counter[str]) -> JsonObject:
    """Return the preference and its annotator: people by their index, others by name; the rest is counted."""
    meta, number = judgment.meta or {}, _PREFERENCES[judgment.verdict]
    preference = meta.get("preference")
    is_same = is_number(preference) and _preferred_verdict(preference) == judgment.verdict
    row: JsonObject = {"preference": preference if is_same else number}
    dropped["judges' kinds"] += judgment.kind == "model"
    if judgment.kind != "human":
        row["annotator"] = judgment.judge
    elif judgment.judge != UNKNOWN_JUDGE:
        is_index = form.get("number", False) and judgment.judge.lstrip("-").isdecimal()
        row["annotator_index"] = int(judgment.judge) if is_index else judgment.judge
    details = {key: value for key, value in meta.items() if key in (*_COSTS, "annotator_index") and key not in row}
    dropped["further fields of judgments"] += len(meta.keys() - {"preference"} - details.keys())
    return row | details


_ALPACA_EVAL = RowFormat(
    kind="alpaca_eval",
    keys=(
        "instruction", "input", "dataset", "output", "generator", "output_1", "generator_1", "output_2", "generator_2",
        *_JUDGED,
    ),
    supports=carrying("subset", "prompt meta", "authors", "judgments", "judges"),
    matches=lambda row: (
        "instruction" in row
        and (
            {"output_1", "output_2", "preference"} <= row.keys()
            or ("generator" in row and isinstance(row.get("output"), str))
        )
    ),
    parse=_parse_alpaca,
    rows_of=_alpaca_rows,
    has_evidence_rows=True,
)  # fmt: skip


# PandaLM: a row per prompt with two responses; people are ``annotator1`` and so on


def _parse_pandalm(reader: CaseReader) -> Case:
    row = reader.row
    instruction, extra = row.text("instruction"), row.text("input")
    text = "\n".join(part for part in (instruction, extra) if part)
    row_id, key = row.value.get("idx"), row.value.get("cmp_key")
    authors = _authors(key) if isinstance(key, str) else (None, None)
    words = [side for side in _SIDES if isinstance(row.value.get(side), bool)]
    answers = [str(row.value[side]) if side in words else row.text(side) for side in _SIDES]
    reader.warnings["answers that are true or false, not texts"] += len(words)
    return Case(
        prompt=reader.prompt(text, name=None if row_id is None else str(row_id)),
        responses=reader.responses(answers, ids=_SIDES, authors=authors),
        judgments=(*_votes(row), *_model_verdicts(row)),
        meta=reader.meta(idx=row_id, input=extra, cmp_key=key if authors == (None, None) else None, words=words),
    )


def _votes(row: Row) -> Iterator[Judgment]:
    for name in _ANNOTATORS:
        if row.value.get(name) is not None:
            verdict = _VERDICTS.get(str(row.value[name]).lower())
            if verdict is None or verdict == "none":
                raise RecordError(f"unknown vote {row.value[name]!r}", where=row.at(name), allowed="1, 2, or 0 (tie)")
            yield Judgment(left=_SIDES[0], right=_SIDES[1], verdict=verdict, judge=name, kind="human")


def _model_verdicts(row: Row) -> Iterator[Judgment]:
    for prefix, judge in _MODELS.items():
        result = row.value.get(f"{prefix}_result")
        if result is None:
            continue
        verdict = _VERDICTS.get(str(result).lower())
        if verdict is None:
            where = row.at(f"{prefix}_result")
            raise RecordError(f"unknown verdict {result!r}", where=where, allowed="1, 2, Tie (or 0), garbage")
        reason, reference = (row.value.get(f"{prefix}_{name}") for name in ("reason", "reference"))
        if not isinstance(reason, str | None):
            raise RecordError("a reason that is not a text", where=row.at(f"{prefix}_reason"))
        # The reason of a judgment without a verdict explains its absence.
        details = {"reason": reason if verdict == "none" else None, "reference": reference}
        yield Judgment(
            left=_SIDES[0],
            right=_SIDES[1],
            verdict=verdict,
            judge=judge,
            kind="llm",
            reason=str(result) if verdict == "none" else reason,
            meta={"result": result} | present(details),
        )


def _authors(key: str) -> tuple[str | None, str | None]:
    """Return the two models of a ``cmp_key``; null where it is not two names with one underline between."""
    first, between, second = key.partition(_BETWEEN)
    return (first, second) if between and first and second and _BETWEEN not in second else (None, None)


def _pandalm_rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row for a case of two responses; other cases are counted and not written."""
    prompt = case.prompt
    count_lost(with_each(case, judgment=_without_known_judge), dropped, _PANDALM.supports)
    if len(case.responses) != len(_SIDES):
        dropped[OTHER_SHAPE] += 1
        return
    question, extra = conversation_of(prompt.messages, dropped).question_apart(form.get("input", ""))
    row_id, key = form.get("idx"), _compared(case, form, dropped)
    row = present({"idx": row_id if str(row_id) == prompt.id else prompt.id, "cmp_key": key})
    row |= {"instruction": question, "input": extra}
    for side, response in zip(_SIDES, case.responses, strict=True):
        text = answer_text(response, dropped)
        row[side] = {"True": True, "False": False}.get(text, text) if side in form.get("words", ()) else text
    yield row | _evidence(case, dropped)


def _without_known_judge(judgment: Judgment) -> Judgment:
    """Return the judgment without a judge that a column names: only other judges are dropped."""
    is_known = judgment.judge in _ANNOTATORS if judgment.kind == "human" else judgment.judge in _MODELS.values()
    has_column = is_known and judgment.kind != "model"
    return replace(judgment, judge=UNKNOWN_JUDGE, kind="human", reason=None) if has_column else judgment


def _compared(case: Case, form: JsonObject, dropped: Counter[str]) -> Any:
    authors = [response.author for response in case.responses]
    if not any(authors):
        return form.get("cmp_key")
    key = _BETWEEN.join(author or UNKNOWN_JUDGE for author in authors)
    dropped["authors that cmp_key cannot hold"] += list(_authors(key)) != authors
    return key


def _evidence(case: Case, dropped: Counter[str]) -> JsonObject:
    """Return votes under their own columns, other people's under free ones, and verdicts of the two known models."""
    row: JsonObject = {}
    first = case.responses[0].id
    prefixes = {judge: prefix for prefix, judge in _MODELS.items()}
    people = [judgment for judgment in case.judgments if judgment.kind == "human"]
    # Those whose column is known take it before the others take a free one.
    for judgment in sorted(people, key=lambda judgment: judgment.judge not in _ANNOTATORS):
        names = [judgment.judge, *_ANNOTATORS] if judgment.judge in _ANNOTATORS else _ANNOTATORS
        free = next((name for name in names if name not in row), None)
        vote = _VOTES.get(verdict_from(first, judgment))
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
            row |= _verdict_fields(prefix, judgment, first)
    return row


def _verdict_fields(prefix: str, judgment: Judgment, first: str) -> JsonObject:
    meta, verdict = judgment.meta or {}, verdict_from(first, judgment)
    read_result = meta.get("result")
    fresh: Any = "garbage" if verdict == "none" else _VOTES[verdict]
    if prefix == "gpt" and verdict != "none":
        fresh = "Tie" if verdict == "tie" else str(fresh)
    values = {
        "result": read_result if _VERDICTS.get(str(read_result).lower()) == verdict else fresh,
        "reason": meta.get("reason") if verdict == "none" else judgment.reason,
        "reference": meta.get("reference"),
    }
    return {f"{prefix}_{name}": value for name, value in present(values).items()}


_PANDALM_KEYS = (
    "idx", "cmp_key", "instruction", "input", *_SIDES, *_ANNOTATORS,
    *(f"{prefix}_{name}" for prefix in _MODELS for name in ("result", "reason", "reference")),
)  # fmt: skip
_PANDALM = RowFormat(
    kind="pandalm",
    keys=_PANDALM_KEYS,
    supports=carrying("prompt ids", "prompt meta", "authors", "judgments"),
    matches=lambda row: (
        {"instruction", "input", *_SIDES} <= row.keys()
        and not {*_ANNOTATORS, *(f"{prefix}_result" for prefix in _MODELS)}.isdisjoint(row)
    ),
    parse=_parse_pandalm,
    rows_of=_pandalm_rows,
    null_keys=_PANDALM_KEYS,
    absent_keys=("idx", "cmp_key"),
    made_keys=("idx",),
)

KINDS = {
    "alpaca_eval": without_settings(
        _ALPACA_EVAL,
        "AlpacaEval rows: a model's output to an instruction, or two models' outputs with an annotator's preference.",
    ),
    "pandalm": without_settings(
        _PANDALM,
        "PandaLM's test set: two responses to an instruction, the votes of three people, and verdicts of language"
        " models.",
    ),
}
