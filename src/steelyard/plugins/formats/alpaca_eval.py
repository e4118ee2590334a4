"""AlpacaEval rows: a model's output to an instruction, or two models' outputs with an annotator's preference.

Written from the example outputs, the published annotations and the README in the repository tatsu-lab/alpaca_eval.
A preference is 1 (the first is better), 2 (the second), 1.5 (equal), a number between them from a weighted annotator,
or null where none could be read; the number is kept. ``annotator`` names a language model; the crowd's annotations
have ``annotator_index`` instead (that file itself could not be read). ``dataset`` is the prompt's subset.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import Case, JsonObject, Judgment, Message, Verdict
from steelyard.curation.format_support import UNKNOWN, carrying, count_lost
from steelyard.plugins.formats._conversations import conversation_of
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_ids,
    answer_of,
    answer_text,
    as_read,
    form_of,
    response_of,
    with_meta,
    with_nulls,
    with_prompt,
)

_KIND = "alpaca_eval"
_PAIR = ("1", "2")
_COSTS = ("price_per_example", "time_per_example")
_JUDGED = ("annotator", "annotator_index", "preference", *_COSTS)
_KEYS = (
    "instruction", "dataset", "output", "generator", "output_1", "generator_1", "output_2", "generator_2", *_JUDGED,
)  # fmt: skip
_NUMBERS: dict[Verdict, float | None] = {"left": 1, "right": 2, "tie": 1.5, "none": None}


class AlpacaEval:
    """A row a judgment; a row a response where a case has no judgments."""

    keys = _KEYS
    supports = carrying("subset", "prompt meta", "authors", "judgments", "judges")

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has an instruction with an output, or with two outputs and a preference."""
        is_output = isinstance(row.get("output"), str) and "generator" in row
        is_annotation = {"output_1", "output_2", "preference"} <= row.keys()
        return "instruction" in row and (is_output or is_annotation)

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases of one response, or of two and a judgment."""
        ids = PromptIds(warnings)
        for row in rows:
            is_pair = "output_1" in row.value or "output_2" in row.value
            ends = [f"_{end}" for end in _PAIR] if is_pair else [""]
            turns = [answer_of(row.text(f"output{end}")) for end in ends]
            authors = [row.optional_text(f"generator{end}") for end in ends]
            names = answer_ids(turns, warnings)
            messages = (Message(role="user", content=row.text("instruction")),)
            subset = row.optional_text("dataset")
            optional = ["dataset", *(f"generator{end}" for end in ends), *(_JUDGED if is_pair else ())]
            known = [key for key in _KEYS if is_pair or key not in _JUDGED]
            responses = zip(names, turns, authors, strict=True)
            yield Case(
                prompt=with_prompt(messages, id=ids.take(row), subset=subset, meta=row.others(known)),
                responses=tuple(response_of(name, turn, author=author) for name, turn, author in responses),
                judgments=(_judgment(row, names),) if is_pair else (),
                meta=as_read(
                    _KIND,
                    null=row.nulls(optional),
                    number=isinstance(row.value.get("annotator_index"), int) and is_pair,
                ),
            )

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield rows of annotations, or of outputs for a case without judgments."""
        for case in cases:
            count_lost(case, dropped, self.supports)
            form = form_of(case, _KIND)
            row = {"instruction": conversation_of(case.prompt.messages, dropped).question}
            subset = {"dataset": case.prompt.subset} if case.prompt.subset is not None else {}
            by_id = {response.id: response for response in case.responses}
            if case.judgments:
                dropped["responses in no judgment"] += len(by_id.keys() - _judged_ids(case))
                written = [
                    _output_fields(case, (judgment.left, judgment.right), dropped)
                    | _judgment_fields(judgment, form, dropped)
                    for judgment in case.judgments
                ]
            else:
                written = [_output_fields(case, (name,), dropped) for name in by_id]
            for values in written:
                yield with_meta(with_nulls(row | values | subset, form), case, _KEYS, dropped)


KINDS = {"alpaca_eval": without_settings(AlpacaEval(), __doc__)}


def _judgment(row: Row, names: tuple[str, ...]) -> Judgment:
    preference = row.value.get("preference")
    if preference is not None and not (is_number(preference) and 1 <= preference <= 2):
        problem, where = f"unknown preference {preference!r}", row.at("preference")
        raise RecordError(problem, where=where, allowed="a number from 1 to 2, or null")
    verdict = _verdict(preference)
    annotator, index = row.optional_text("annotator"), row.value.get("annotator_index")
    if index is not None and (isinstance(index, bool) or not isinstance(index, str | int)):
        raise RecordError("an index that is not a whole number", where=row.at("annotator_index"))
    meta = {key: row.value[key] for key in _COSTS if row.value.get(key) is not None}
    if preference != _NUMBERS[verdict]:
        meta["preference"] = preference
    return Judgment(
        left=names[0],
        right=names[1],
        verdict=verdict,
        judge=annotator or (UNKNOWN if index is None else str(index)),
        kind="human" if annotator is None else "llm",
        reason="no preference" if verdict == "none" else None,
        meta=(meta | ({"annotator_index": index} if annotator is not None and index is not None else {})) or None,
    )


def _verdict(preference: Any) -> Verdict:
    if preference is None:
        return "none"
    return "tie" if preference == 1.5 else "left" if preference < 1.5 else "right"


def _judged_ids(case: Case) -> set[str]:
    return {name for judgment in case.judgments for name in (judgment.left, judgment.right)}


def _output_fields(case: Case, names: tuple[str, ...], dropped: Counter[str]) -> JsonObject:
    """Return the outputs and their generators, with the numbers that two of them have."""
    by_id = {response.id: response for response in case.responses}
    ends = [f"_{end}" for end in _PAIR] if len(names) > 1 else [""]
    row: JsonObject = {}
    for end, name in zip(ends, names, strict=True):
        row[f"output{end}"] = answer_text(by_id[name], dropped)
        if by_id[name].author is not None:
            row[f"generator{end}"] = by_id[name].author
    return row


def _judgment_fields(judgment: Judgment, form: JsonObject, dropped: Counter[str]) -> JsonObject:
    """Return the preference and its annotator: people by their index, others by name; the rest is counted."""
    meta, number = judgment.meta or {}, _NUMBERS[judgment.verdict]
    preference = meta.get("preference")
    is_same = is_number(preference) and _verdict(preference) == judgment.verdict
    row: JsonObject = {"preference": preference if is_same else number}
    if judgment.kind == "model":
        dropped["judges' kinds"] += 1
    if judgment.kind != "human":
        row["annotator"] = judgment.judge
    elif judgment.judge != UNKNOWN:
        is_index = form.get("number", False) and judgment.judge.lstrip("-").isdecimal()
        row["annotator_index"] = int(judgment.judge) if is_index else judgment.judge
    details = {key: value for key, value in meta.items() if key in (*_COSTS, "annotator_index") and key not in row}
    dropped["what judgments say besides"] += len(meta.keys() - {"preference"} - details.keys())
    return row | details
