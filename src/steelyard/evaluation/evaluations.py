"""Read evaluations that are compared in one table, and refuse those of different prompts or protocols."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec
import numpy as np
from msgspec.structs import replace

from steelyard.core.errors import EvidenceError, FileError
from steelyard.core.numerics import Integers
from steelyard.core.plugins import build
from steelyard.core.remedies import ANY, NUMBER, Advice, Command, Remedy
from steelyard.core.types import InputFinding, JsonObject, Run
from steelyard.evaluation.items import Item, MeasuredItem, measure_columns, read_items
from steelyard.evaluation.measure import BenchCeiling, measures
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.io.run_folder import read_run
from steelyard.statistics.aggregation import Headline, mean_accuracy
from steelyard.statistics.bootstrap import Items, Totals, resample
from steelyard.statistics.groups import Cell, Label, Layout, layout_of
from steelyard.statistics.pair_counts import UnscoredPairs
from steelyard.statistics.prompt_means import Ratio

JOINED_RUNS = "runs"
"""The detail of a finding that several evaluations share: their names."""
_BENCH_SETTINGS = ("bench_kind", "bench", "pairs", "metric_compat", "matched_ratio")
_STATED = "label_error"
"""The setting of a bench that changes no value: older records lack it."""


Differing = Literal["self_test", "dtype", "max_length", "over_length", "template"]
"""Facts that may differ with permission: they affect the scores, but not the pairs that are scored."""

_OF_A_FAMILY = ("dtype", "max_length", "over_length")
_OF_A_MODEL = {"template_hash": "template", "special_tokens": "template", "strip": "template"}


class Fact(NamedTuple):
    """A setting that must be equal among all runs ``of`` the same benchmark, model family or model."""

    name: str
    of: str


_OF_THE_BENCH = (Fact("bench_kind", "bench"), Fact("bench", "bench"))


class Evaluated(NamedTuple):
    """One evaluation: its name in the table, its folder, its record, and its statistics by prompt.

    ``statistics`` has shape (prompt, 4 + the bench's own columns) and counts ``unscored`` pairs as wrong. ``measures``
    are the ratios of the other measures.
    """

    name: str
    folder: Path
    run: Run[EvaluationSummary]
    statistics: Integers
    measures: dict[str, Ratio]
    unscored: UnscoredPairs = UnscoredPairs()


class EvaluationSet(NamedTuple):
    """Evaluations of the same prompts in the same order, with the labels and the layout of these prompts.

    ``left_out`` counts, by cell, the prompts without a comparable pair. ``num_unshared`` counts the prompts that are
    left out because one evaluation has a pair of equal texts where another has two texts.
    """

    evaluated: tuple[Evaluated, ...]
    labels: tuple[Label, ...]
    layout: Layout
    left_out: dict[Cell, int]
    num_unshared: int = 0


def read_evaluations(folders: Sequence[Path]) -> EvaluationSet:
    """Read the evaluations in these folders.

    Raises FileError for the folder of another stage, and EvidenceError for unequal settings or prompts, or an
    evaluation without a headline.
    """
    runs: list[Run[EvaluationSummary]] = []
    for folder in folders:
        runs.append(read_evaluation(folder))
        if not has_headline(runs[-1]):
            raise EvidenceError(
                "most pairs have no score or verdict, so the evaluation has no headline to compare",
                where=str(folder),
                do=Advice(
                    "leave this folder out, or evaluate again with a longer limit: ",
                    Command("evaluate", (ANY,), (Remedy("max_length", NUMBER),)),
                ),
            )
    check_equal_settings(folders, runs)
    return join_evaluations(folders, runs)


def check_equal_settings(folders: Sequence[Path], runs: Sequence[Run[EvaluationSummary]]) -> None:
    """Raise EvidenceError for the first evaluation by another benchmark or rule than the first."""
    for index in range(1, len(folders)):
        first, other = bench_settings(runs[0]), bench_settings(runs[index])
        for key in first:
            if first[key] != other[key]:
                name, here, there = _differing(key, other[key], first[key])
                raise EvidenceError(
                    f"{name} is {_json(here)} here and {_json(there)} in {folders[0]}",
                    where=str(folders[index]),
                    do="evaluate both models with equal settings: values of different protocols are not comparable",
                )


class _Differing(NamedTuple):
    """A setting by the path of its keys, with its two values."""

    name: str
    here: object
    there: object


def _differing(name: str, here: object, there: object) -> _Differing:
    """Return the innermost setting that differs: of a table its first key with another value."""
    if isinstance(here, dict) and isinstance(there, dict):
        keys = [*here, *(key for key in there if key not in here)]
        key = next(key for key in keys if here.get(key) != there.get(key))
        return _differing(f"{name}.{key}", here.get(key), there.get(key))
    return _Differing(name, here, there)


def bench_settings(run: Run[Any]) -> JsonObject:
    """Return the settings of `evaluate` that must be equal for two values to be comparable."""
    settings = {key: run.config.get(key) for key in _BENCH_SETTINGS}
    if isinstance(bench := settings["bench"], dict):
        settings["bench"] = {key: value for key, value in bench.items() if key != _STATED}
    return settings


def join_evaluations(folders: Sequence[Path], runs: Sequence[Run[EvaluationSummary]]) -> EvaluationSet:
    """Return the set of evaluations whose records are read and have equal settings.

    Raises EvidenceError for unequal prompts.
    """
    names = model_names(folders, runs)
    items = [list(read_items(folder, MeasuredItem)) for folder in folders]
    unshared = {place for index in range(1, len(folders)) for place in _unshared(folders, runs, items, index)}
    if unshared:
        items = [[item for place, item in enumerate(each) if place not in unshared] for each in items]
    # Exact match is null for a prompt without a comparable pair, which is not counted.
    counted = [[item for item in each if item.exact_match is not None] for each in items]
    evaluated = tuple(_evaluated(*values) for values in zip(names, folders, runs, counted, strict=True))
    labels = tuple(Label(item.unit or item.prompt, item.cell) for item in counted[0])
    left_out = Counter(item.cell for item in items[0] if item.exact_match is None)
    return EvaluationSet(evaluated, labels, layout_of(labels), dict(left_out), len(unshared))


def read_evaluation(folder: Path) -> Run[EvaluationSummary]:
    """Read the record of an evaluation. Raises FileError for a folder without a finished run of `evaluate`."""
    stage = read_run(folder).stage
    if stage != "evaluate":
        raise FileError(
            f"the folder holds a run of {stage}",
            where=str(folder),
            allowed=Advice("the folder of a run of `", Command("evaluate"), "`"),
        )
    return read_run(folder, Run[EvaluationSummary])


def bench_of(run: Run[Any], folder: Path) -> Any:
    """Build the benchmark that a record names. Raises FileError for a record without one, KindError for an unknown."""
    kind, settings = run.config.get("bench_kind"), run.config.get("bench")
    if not isinstance(kind, str) or not isinstance(settings, dict):
        raise FileError(
            "run.json does not name a benchmark", where=str(folder), do="evaluate again with this version of Steelyard"
        )
    return build("benches", kind, settings)


def has_headline(run: Run[EvaluationSummary]) -> bool:
    """Return whether the evaluation has a headline; with most pairs unscored it has bounds only."""
    return run.summary.accuracy.value is not None


def model_names(folders: Sequence[Path], runs: Sequence[Run[EvaluationSummary]]) -> list[str]:
    """Return the name of each evaluation: its model, with its folder where several evaluate the same model."""
    names = [run.summary.model for run in runs]
    return [
        name if names.count(name) == 1 else f"{name} ({folder})" for name, folder in zip(names, folders, strict=True)
    ]


def _evaluated(name: str, folder: Path, run: Run[EvaluationSummary], counted: Sequence[Item]) -> Evaluated:
    """Return an evaluation with the columns of its counted prompts, and the ratios by which models are compared."""
    rows = [(item.num_pairs, item.num_correct, 1, item.exact_match, *item.bench_columns) for item in counted]
    width = 4 + (len(counted[0].bench_columns) if counted else 0)
    ratios: dict[str, Ratio] = {}
    for measure, values in measure_columns(counted).items():
        ratios |= measures()[measure].paired(values)
    partly = {row: item for row, item in enumerate(counted) if item.unscored}
    unscored = UnscoredPairs(
        {row: frozenset(item.unscored) for row, item in partly.items()},
        {row: (item.exact_if_right, *item.own_if_right) for row, item in partly.items()},
    )
    return Evaluated(name, folder, run, np.array(rows, dtype=np.int64).reshape(len(rows), width), ratios, unscored)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _unshared(
    folders: Sequence[Path], runs: Sequence[Run[EvaluationSummary]], items: Sequence[Sequence[Item]], index: int
) -> list[int]:
    """Return the positions of prompts whose pairs differ from the first evaluation's by pairs of equal texts.

    Raises EvidenceError for other differences.
    """
    keys, other_keys = ([item.key for item in items[side]] for side in (0, index))
    more = [other.num_pairs - first.num_pairs for first, other in zip(items[0], items[index], strict=False)]
    fewer = sum(max(number, 0) for number in more), sum(max(-number, 0) for number in more)
    left_out = runs[0].summary.num_left_out, runs[index].summary.num_left_out
    if keys == other_keys and all(number <= most for number, most in zip(fewer, left_out, strict=True)):
        return [place for place, number in enumerate(more) if number]
    absent = sorted({key[0] for key in keys} ^ {key[0] for key in other_keys})
    what = f"only one of them has prompt {absent[0]!r}" if absent else "the pairs, or their order, differ"
    raise EvidenceError(
        f"the prompts are not those of {folders[0]}: {what}",
        where=str(folders[index]),
        do="evaluate both models on the same benchmark files",
    )


def ceiling_of(evaluations: EvaluationSet) -> BenchCeiling | None:
    """Return what a perfect model reaches on the bench, as the best evidence of an evaluation has it; None without any.

    Labels that better judges made again come before people's answers, and more of them before fewer.
    """
    ceilings = [
        ceiling
        for model in evaluations.evaluated
        for measure, summary in model.run.summary.measured()
        if (ceiling := measure.ceiling(summary)) is not None
    ]
    return max(ceilings, key=lambda ceiling: (ceiling.least is None, ceiling.accuracy.n), default=None)


def headline_of(evaluations: EvaluationSet) -> Headline:
    """Return the headline by which these evaluations are ranked, or the missing parts that prevent one."""
    first = evaluations.evaluated[0]
    return bench_of(first.run, first.folder).headline(_totals(evaluations), evaluations.left_out)


def ranking_of(evaluations: EvaluationSet) -> Headline:
    """Return the headline; for a part of a bench, accuracy on that part with the ``missing`` parts."""
    headline = headline_of(evaluations)
    return mean_accuracy(_totals(evaluations))._replace(missing=headline.missing) if headline.missing else headline


def _totals(evaluations: EvaluationSet) -> Totals:
    return resample(Items(evaluations.layout, evaluations.evaluated[0].statistics, num_resamples=0), seed=0)


def facts_of(run: Run[EvaluationSummary]) -> dict[Fact, Any]:
    """Return the facts that must be equal among the runs of a benchmark, a family of models, or a model."""
    bench = {f"bench file {number}": sha256 for number, sha256 in enumerate(bench_hashes(run), 1)}
    settings = bench_settings(run) | {"number of bench files": len(bench)} | bench
    facts = {Fact(key, "bench"): value for key, value in settings.items()}
    facts[Fact("self_test", "bench")] = "off" if run.summary.self_test_state == "off" else "on"
    protocol = run.summary.protocol or {}
    family = protocol.get("family") or run.config.get("model_kind")
    facts |= {Fact(key, f"family {family}"): protocol[key] for key in _OF_A_FAMILY if key in protocol}
    model = run.summary.model
    return facts | {Fact(key, f"model {model}"): protocol[key] for key in _OF_A_MODEL if key in protocol}


def bench_hashes(run: Run) -> list[str]:
    """Return the sorted hashes of the benchmark's files, whose order on the command line is irrelevant."""
    return sorted(file.sha256 for role, file in run.inputs.items() if role.split(".")[0] == "bench")


def check_protocols(
    runs: Mapping[str, Run[EvaluationSummary]], allowed: Sequence[Differing], *, apart: Collection[str] = ()
) -> dict[str, dict[str, list[str]]]:
    """Return the facts that differ with permission: their values, and the runs with each value.

    The runs ``apart`` are listed separately in the table: only their benchmark must be the same. Raises EvidenceError
    for any other difference.
    """
    by_fact: dict[Fact, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, run in runs.items():
        for fact, value in facts_of(run).items():
            if name in apart and fact not in _OF_THE_BENCH:
                continue
            by_fact[fact][msgspec.json.encode(value).decode()].append(name)
    differing = {fact: dict(values) for fact, values in by_fact.items() if len(values) > 1}
    refused = {
        fact: values for fact, values in differing.items() if _OF_A_MODEL.get(fact.name, fact.name) not in allowed
    }
    if not refused:
        return {_title(fact): values for fact, values in differing.items()}
    differences = "; ".join(f"{_title(fact)}: {_list_values(values)}" for fact, values in refused.items())
    names_to_allow = [_OF_A_MODEL.get(fact.name, fact.name) for fact in refused]
    names = [name for name in dict.fromkeys(names_to_allow) if name in get_args(Differing)]
    raise EvidenceError(
        f"the evaluations differ in their protocols: {differences}",
        do=Advice(
            "evaluate all with equal settings, or make one table per protocol",
            *(("; or permit the difference: ", Remedy("allow_differing", names)) if names else ()),
        ),
    )


def _title(fact: Fact) -> str:
    return fact.name if fact.of == "bench" else f"{fact.name} ({fact.of})"


def _list_values(values: Mapping[str, Sequence[str]]) -> str:
    # A SHA-256 hash as JSON has 64 hexadecimal digits in quotation marks.
    short = {value: f"{value[1:13]}…" if len(value) == 66 else value for value in values}
    return ", ".join(f"{short[value]} in {', '.join(names)}" for value, names in values.items())


def joined_findings(runs: Mapping[str, Run[EvaluationSummary]]) -> tuple[InputFinding, ...]:
    """Return the findings of evaluations by name, those that several have once, with the names of all of them."""
    findings = [(name, finding) for name, run in runs.items() for finding in run.findings]
    return tuple(
        replace(finding, details={**finding.details, JOINED_RUNS: ", ".join(names)})
        for finding, names in equal_findings(findings)
    )


def equal_findings(findings: Iterable[tuple[str, InputFinding]]) -> Iterator[tuple[InputFinding, list[str]]]:
    """Yield each finding with the names of all that have it.

    Findings of one name each that differ in the name of the file alone are one, without that name.
    """
    groups: defaultdict[bytes, list[tuple[str, InputFinding]]] = defaultdict(list)
    for name, finding in findings:
        groups[finding_key(finding)].append((name, finding))
    for group in groups.values():
        names = [name for name, _ in group]
        files = dict.fromkeys(finding.details.get("file") for _, finding in group)
        first = group[0][1]
        if len(files) == 1:
            yield first, names
        elif len(set(names)) == len(names):
            yield replace(first, details={key: value for key, value in first.details.items() if key != "file"}), names
        else:
            for file in files:
                of_file = [(name, finding) for name, finding in group if finding.details.get("file") == file]
                yield of_file[0][1], [name for name, _ in of_file]


def finding_key(finding: InputFinding) -> bytes:
    """Return what findings share that are the same in other files or evaluations."""
    details = {key: value for key, value in finding.details.items() if key not in ("file", JOINED_RUNS)}
    return msgspec.json.encode(replace(finding, details=details), order="sorted")
