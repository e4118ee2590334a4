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

from collections.abc import Iterator, Sequence

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import UNKNOWN_JUDGE, Case, Judgment, Message, Verdict
from steelyard.curation.evidence_rows import text_id
from steelyard.curation.format_support import carrying
from steelyard.plugins.formats._row_format import (
    CaseReader,
    RowFormat,
    present,
)

_COSTS = ("price_per_example", "time_per_example")
_JUDGED = ("annotator", "annotator_index", "preference", *_COSTS)
_PREFERENCES: dict[Verdict, float | None] = {"left": 1, "right": 2, "tie": 1.5, "none": None}

_SIDES = ("response1", "response2")
_ANNOTATORS = tuple(f"annotator{number}" for number in range(1, 10))
_MODELS = {"gpt": "gpt-3.5-turbo", "pandalm": "pandalm-7b"}
"""The language models of PandaLM's published verdicts, by the beginning of their keys."""
_VERDICTS: dict[str, Verdict] = {"1": "left", "2": "right", "0": "tie", "tie": "tie", "garbage": "none"}
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
    # The keys of a verdict are other keys of a row without one.
    meta = row.others([key for key in reader.keys if is_pair or key not in _JUDGED])
    return Case(
        prompt=reader.prompt(question, id=text_id([Message(role="user", content=question)]), subset=subset, meta=meta),
        responses=responses,
        judgments=(_preference(row, [response.id for response in responses]),) if is_pair else (),
    )


def _preference(row: Row, names: Sequence[str]) -> Judgment:
    preference = row.value.get("preference")
    if preference is not None and not (is_number(preference) and 1 <= preference <= 2):
        problem, where = f"unknown preference {preference!r}", row.at("preference")
        raise RecordError(problem, where=where, allowed="a number from 1 to 2, or null")
    verdict: Verdict = "none"
    if preference is not None:
        verdict = "tie" if preference == 1.5 else "left" if preference < 1.5 else "right"
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
    has_evidence_rows=True,
)  # fmt: skip


# PandaLM: a row per prompt with two responses; people are ``annotator1`` and so on


def _parse_pandalm(reader: CaseReader) -> Case:
    row = reader.row
    instruction, extra = row.text("instruction"), row.text("input")
    text = "\n".join(part for part in (instruction, extra) if part)
    row_id, key = row.value.get("idx"), row.value.get("cmp_key")
    # The key is the names of the two models with one underline between.
    first, between, second = key.partition(_BETWEEN) if isinstance(key, str) else ("", "", "")
    authors = (first, second) if between and first and second and _BETWEEN not in second else (None, None)
    are_words = [isinstance(row.value.get(side), bool) for side in _SIDES]
    answers = [
        str(row.value[side]) if is_word else row.text(side) for side, is_word in zip(_SIDES, are_words, strict=True)
    ]
    reader.warnings["answers that are true or false, not texts"] += sum(are_words)
    return Case(
        prompt=reader.prompt(text, name=None if row_id is None else str(row_id)),
        responses=reader.responses(answers, ids=_SIDES, authors=authors),
        judgments=(*_votes(row), *_model_verdicts(row)),
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
