"""Data as functions: read and write case files, convert, merge, split, simulate, and look at one case."""

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, cast

from steelyard.api.arguments import check_value, checked
from steelyard.api.calls import Call, PathText, json_value, verb
from steelyard.api.cases import Cases, CasesLike
from steelyard.api.outcomes import Outcome
from steelyard.api.unrecorded import Converted, ItemView, convert_source, target_of
from steelyard.core.types import Case, JsonObject

_COLUMNS = ("steelyard.plugins.formats.columns", "Config")


@checked
def read_cases(path: PathText) -> Cases:
    """Read a case file (``.jsonl`` or ``.parquet``). Other formats: `convert`.

    Raises RecordError, with file and line, for a case that is not valid, and FileError for a file that is none.

    >>> sy.write_cases("cases.jsonl", cases)
    40
    >>> sy.read_cases("cases.jsonl")
    Cases(40 prompts, 80 responses, 40 judgments)
    """
    return Cases(path)


@checked
def write_cases(path: PathText, cases: Iterable[Case]) -> int:
    """Write a case file, ``.jsonl`` or ``.parquet`` by its suffix, and return the number of cases.

    >>> sy.write_cases("zh.parquet", cases.filter(lambda case: case.prompt.language == "zh"))
    20
    """
    from steelyard.io.cases import write_cases as write

    return write(Path(path), map(_only_case, cases))


def _only_case(case: object) -> Case:
    check_value("an item of cases", case, Case, where="write_cases")
    return cast("Case", case)


@verb("convert", more=_COLUMNS)
def convert(data: CasesLike, out: PathText | None = None, *, force: bool = False, **settings: Any) -> Converted:
    """Convert preference data of any known format into cases, or cases into another format.

    ``data`` is a file, a dataset saved to disk, or a table in memory: rows, polars, pandas, pyarrow, datasets. The
    format is recognised by its fields, or named by ``from_kind``; columns of a table of your own are named by
    ``prompt_column`` and its like. ``to_kind`` writes another format. With ``out`` the result is a file. What a format
    cannot represent is counted in ``lost``.

    Raises KindError for an unknown format, RecordError for a broken row, OutputError for an ``out`` that holds
    something else without ``force``.

    >>> rows = [{"question": "2 + 2?", "good": "4", "bad": "5"}]
    >>> converted = sy.convert(rows, prompt_column="question", chosen_column="good", rejected_column="bad")
    >>> converted.cases
    Cases(1 prompt, 2 responses)
    >>> sy.convert(converted.cases, to_kind="trl", settings={"texts": True}).rows
    [{'prompt': '2 + 2?', 'chosen': '4', 'rejected': '5'}]
    """
    return convert_source(data, out, settings, force=force)


@checked
def inspect(
    target: "CasesLike | Outcome[Any]",
    prompt: str,
    *,
    language: str | None = None,
    model: str | PathLike[str] | None = None,
    model_settings: JsonObject | None = None,
    scores: Sequence[PathText] = (),
    tokens: bool = False,
    only: Sequence[str] = (),
    aggregate: str | None = None,
) -> ItemView:
    """Look at one case: who beats whom, cycles, tiers, scores, and with ``tokens`` what a model reads.

    ``target`` is a case file, cases in memory, or the folder or result of a run, whose scores are shown too. Raises
    EvidenceError for an unknown prompt id, or one in several languages without ``language``.

    >>> view = sy.inspect(cases, "p1", language="en")
    >>> view.item.analysis.ranking
    (('a',), ('b',))
    """
    from steelyard.report.case_sources import choose_rule
    from steelyard.stages.inspect import InspectOptions, inspect_item

    with Call("inspect", None) as call:
        options = InspectOptions(
            tuple(map(Path, scores)),
            None if model is None else str(model),
            json_value(model_settings or {}),
            tokens,
            choose_rule(only, aggregate),
        )
        return ItemView(inspect_item(target_of(target, call), prompt, options, language=language))
