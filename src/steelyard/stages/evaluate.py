"""The verb `evaluate`: a reward model, a judge, or a file of scores against the rankings of a benchmark."""

from array import array
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from steelyard.core.checks import with_hashes
from steelyard.core.config import resolve_config
from steelyard.core.errors import ConfigError
from steelyard.core.plugins import build, load
from steelyard.core.protocols import JudgeModel
from steelyard.core.remedies import FILE, Advice, Command, Placeholder, Remedy
from steelyard.core.types import Counts, InputFinding, JsonObject, Meta, Run
from steelyard.evaluation.batches import (
    BatchResult,
    Source,
    evaluate_batch,
    evaluate_lines,
    evaluate_scored,
    join_parts,
)
from steelyard.evaluation.benches import (
    BenchCases,
    bench_name,
    check_bench_files,
    check_overlap,
    find_bench_files,
    read_bench_file,
    split_kinds,
)
from steelyard.evaluation.config import TRAINED_BASELINE, Config, check_settings, choose_baselines
from steelyard.evaluation.external_scores import AlignmentError, side_by_side
from steelyard.evaluation.few_labels import evaluate_few_labels, separate_labels
from steelyard.evaluation.model_self_tests import SelfTestSummary, self_tested
from steelyard.evaluation.pair_verdicts import ask, check_bench, refuse_failed
from steelyard.evaluation.prediction_powered import PPISummary
from steelyard.evaluation.relabelled import read_relabelled
from steelyard.evaluation.summary import Evaluation, EvaluationSummary, coverage_counter, reversed_scores, summarise
from steelyard.io.hashing import file_hash
from steelyard.io.kept import read_kept
from steelyard.io.ledger import LEDGER_FILE
from steelyard.io.progress import bar, track
from steelyard.io.run_folder import Result, run_beside, run_stage
from steelyard.io.scored_cases import HashCoverage, JoinedScores, ScoredCase
from steelyard.io.verbs import MODEL, MODEL_SETTINGS, Option, SettingOption, Verb, in_panel, settings
from steelyard.plugins.reward_models import (
    Builder,
    ModelChoice,
    build_model,
    choose_model,
    forget_lines,
    scored_once,
)
from steelyard.ranking.label_origin import JUDGES
from steelyard.ranking.pairs import UNLISTED

_WORTH_PROCESSES_BYTES = 2**25
_DEFAULT = Config()


VERB = Verb(
    "Models",
    53,
    (
        Option(
            "benches",
            "[KIND=]FILE, folder or quoted pattern; repeat. Without KIND, case files, or a folder with bench.toml."
            " Kinds: steelyard list benches.",
            "bench",
            complete="benches",
            is_text=True,
            is_optional=True,
        ),
        Option("out", "The folder for run.json, items and scores."),
        MODEL,
        Option("scores", "Scores made elsewhere (docs/formats.md)."),
        Option("kept_prompts", "A kept.json: only its prompts count.", "kept"),
        Option("relabelled", "Cases: a random part, labelled again by better judges."),
        *in_panel(
            "Baselines",
            SettingOption("baselines", note="With commas; or none.", complete="baselines", has_commas=True),
            Option("train_cases", "The training file: the n-gram baseline learns from it."),
        ),
        *in_panel(
            "Few human and many judge labels, instead of a bench",
            Option("human", "[KIND=]FILE: people's rankings of a random part.", is_text=True),
            Option("judged", "[KIND=]FILE: a judge's rankings of all prompts, those of people too.", is_text=True),
            SettingOption("width"),
        ),
        *in_panel("Model", *MODEL_SETTINGS, SettingOption("self_test", "no_self_test")),
        *settings("pairs", "metric_compat", "allow_unscored", panel="Counting"),
        Option("workers", "Processes that read a scores file. Default: one a core."),
    ),
    prepare="read_bench_kind",
)


def read_bench_kind(inputs: JsonObject, settings: JsonObject) -> None:
    """Split `KIND=FILE` into the kind of bench and its path. A value that is an existing path has no kind."""
    texts_by_input = {name: [inputs[name]] for name in ("human", "judged") if name in inputs} | {
        "benches": list(inputs.get("benches") or ())
    }
    files = {
        name: split_kinds(texts, is_path=lambda text: Path(text).exists()) for name, texts in texts_by_input.items()
    }
    kinds = {kind for by_kind in files.values() for kind in by_kind}
    if len(kinds) > 1:
        problem = f"two kinds of bench at once: {', '.join(sorted(kinds))}"
        raise ConfigError(problem, do=Advice("run `", Command("evaluate"), "` for each kind"))
    if kinds:
        (settings["bench_kind"],) = kinds
    for name, by_kind in files.items():
        paths = [Path(file) for texts in by_kind.values() for file in texts]
        inputs[name] = paths if name == "benches" else paths[0]


def evaluate(
    benches: Sequence[Path],
    out: Path,
    config: Config = _DEFAULT,
    *,
    model: str | None = None,
    scores: Path | None = None,
    train_cases: Path | None = None,
    human: Path | None = None,
    judged: Path | None = None,
    kept_prompts: Path | None = None,
    relabelled: Path | None = None,
    workers: int | None = None,
    builder: Builder | None = None,
    force: bool = False,
) -> Run[EvaluationSummary]:
    """Evaluate a reward model, or scores made elsewhere, with intervals and next to simple baselines.

    A pair is right when the better response has the strictly greater score; a prompt is an exact match when all of its
    pairs are right. The headline is the mean over the top categories; intervals are over prompts. Before it
    scores, a model is tested on a few of the cases: batches, equal bits, packing, BOS token, last token, head, length.

    Example: `steelyard evaluate --bench test.jsonl --model my-model --out result`

    Example: `steelyard evaluate --bench cheemsbench=open.jsonl --bench cheemsbench=human.jsonl --model model --out out`

    Example: `steelyard evaluate --bench rmb=RMB_dataset --model model --out rmb`

    Example: `steelyard evaluate --human few.jsonl --judged many.jsonl --width 0.1 --model my-model --out powered`

    Example: `steelyard evaluate --bench my-bench --model my-model --out result`

    Example: `steelyard evaluate --bench rewardbench=filtered.parquet --scores scores.jsonl --out rewardbench`

    Raises ConfigError unless exactly one of ``model`` and ``scores`` is given, RecordError for scores that do not match
    the bench, and EvidenceError if a response has no score for a reason other than its length without
    ``allow_unscored``, or if the model was trained on a prompt without ``allow_overlap``.
    """
    if (model is None) == (scores is None):
        raise ConfigError(
            "exactly one of model and scores is required",
            do=Advice("use ", Remedy("model", Placeholder("M")), ", or ", Remedy("scores", FILE)),
        )
    if scores is not None and config.model:
        problem = f"scores are given with settings of a model: {', '.join(sorted(config.model))}"
        raise ConfigError(problem, do="remove these settings: they have no effect on existing scores")
    _check_labels(benches, human, judged, relabelled, config)
    check_settings(config)
    bench_paths = [*benches, *(path for path in (human, judged) if path is not None)]
    kind, bench_settings = read_bench_file(config.bench_kind, config.bench, bench_paths)
    config = replace(config, bench_kind=kind, bench=bench_settings)
    bench = build("benches", config.bench_kind, config.bench)
    choice = None if model is None else _chosen(model, config, train_cases)
    baselines = choose_baselines(config, train_cases)
    settings = _resolved_settings(config, choice)
    files = find_bench_files(benches if human is None else [human], bench)
    judged_files = () if judged is None else find_bench_files([judged], bench)
    check_bench_files((*files, *judged_files), config.bench)
    if judged_files and choice is not None:
        _refuse_judge(choice)
    inputs = _inputs(files, bench, choice=choice, scores=scores, train_cases=train_cases)
    inputs |= {f"judged.{number}": path for number, path in enumerate(judged_files, 1)}
    inputs |= {role: path for role, path in (("kept", kept_prompts), ("relabelled", relabelled)) if path is not None}
    ids = None if kept_prompts is None else frozenset(read_kept(kept_prompts).prompts)

    def write(result: Result) -> None:
        cases = BenchCases(judged_files or files, bench, ids)
        overlap = check_overlap(cases, choice=choice, scores=scores, is_allowed=config.allow_overlap)
        again = None if relabelled is None else read_relabelled(relabelled, files, cases, config.pairs, ids)
        # Baselines that read files are built first, so that their errors appear before the model scores.
        built = {baseline.name: build_model(baseline) for baseline in baselines}
        source = Source(cases, bench, config, built)
        powered: PPISummary | None = None
        if judged_files:
            people = source._replace(cases=BenchCases(files, bench, ids))
            evaluated, powered = _with_few_labels(
                source, people, result, choice=choice, scores=scores, builder=builder or build_model
            )
        elif scores is not None:
            evaluated = _with_scores(source, result, scores, train_cases, workers)
        else:
            assert choice is not None, "a model or scores"
            evaluated = (_with_judge if choice.judges else _with_model)(source, result, choice, builder or build_model)
        forget_lines(result)
        summary = summarise(evaluated.evaluation._replace(relabelled=again))
        names = evaluated.model._asdict()
        result.findings += reversed_scores(summary, evaluated.model.model)
        result.summary = replace(
            summary,
            bench=bench_name(config.bench_kind, judged_files or files, config.bench),
            prediction_powered=powered,
            **names,
        )
        noted = {} if powered is None else {"judged prompts": powered.num_judged}
        noted |= {} if again is None else {"relabelled prompts": again.num_prompts}
        result.counts = _counts(evaluated.evaluation, cases.warnings | overlap | noted)

    return run_stage(out, "evaluate", Run[EvaluationSummary], write, config=settings, inputs=inputs, force=force)


def _check_labels(
    benches: Sequence[Path], human: Path | None, judged: Path | None, relabelled: Path | None, config: Config
) -> None:
    """Raise ConfigError unless there are either benches, or human labels and a judge's."""
    if (human is None) != (judged is None):
        problem = "people's labels of few prompts and a judge's labels of many belong together"
        raise ConfigError(problem, do=Advice("add ", Remedy("human" if human is None else "judged", FILE)))
    if human is not None and benches:
        raise ConfigError(
            "a benchmark is given twice",
            do=Advice(
                "leave out ", Remedy("bench"), ": ", Remedy("human"), " and ", Remedy("judged"), " are the benchmark"
            ),
        )
    if human is not None and relabelled is not None:
        problem = "relabelled cases belong to a benchmark, not to people's labels, which are taken for right"
        raise ConfigError(problem, do=Advice("leave out ", Remedy("relabelled")))
    if human is None and not benches:
        raise ConfigError(
            "no benchmark is given",
            do=Advice("add ", Remedy("bench", FILE), ", or ", Remedy("bench", Placeholder("KIND=FILE"))),
        )
    if human is None and config.width is not None:
        raise ConfigError(
            "width has no effect on one kind of labels",
            do=Advice("add ", Remedy("human", FILE), " and ", Remedy("judged", FILE)),
        )


def _refuse_judge(choice: ModelChoice) -> None:
    """Raise ConfigError for a model that is a judge."""
    if choice.judges:
        problem = "the model is a judge, and its own verdicts cannot stand for labels that it is evaluated on"
        raise ConfigError(
            problem,
            do=Advice(
                *("choose a reward model, or remove ", Remedy("human"), " and ", Remedy("judged"), " and add "),
                Remedy("bench", FILE),
            ),
        )


def _chosen(model: str, config: Config, train_cases: Path | None) -> ModelChoice:
    """Return the model; a kind that must be trained uses the training cases unless its settings name others."""
    choice = choose_model(model, config.model)
    if choice.settings.get("train", True):
        return choice
    if train_cases is None:
        problem = f"the {choice.kind} model needs training cases"
        raise ConfigError(problem, do=Advice("add ", Remedy("train_cases", FILE), ", or ", Remedy("model.train", FILE)))
    return choose_model(model, {**config.model, "train": str(train_cases)})


def _resolved_settings(config: Config, choice: ModelChoice | None) -> dict[str, Any]:
    """Return the resolved settings, including model and bench: their equality makes two runs equal."""
    bench = msgspec.to_builtins(
        resolve_config(load("benches", config.bench_kind).Config, config.bench, where=f"bench.{config.bench_kind}")
    )
    of_model = {"model_kind": choice.kind, "model": choice.settings} if choice else {"model_kind": None, "model": {}}
    return msgspec.to_builtins(config) | {"bench": bench} | of_model


def _inputs(
    files: Sequence[Path], bench: Any, *, choice: ModelChoice | None, scores: Path | None, train_cases: Path | None
) -> dict[str, Path]:
    """Return the files by role. The role of a bench file includes the subset of its name, which affects results."""
    subsets = [bench.subset_of(path.name) for path in files]
    roles = [f"bench.{number}" + (f".{subset}" if subset else "") for number, subset in enumerate(subsets, 1)]
    others = {role: path for role, path in (("scores", scores), ("train_cases", train_cases)) if path is not None}
    return {**dict(zip(roles, files, strict=True)), **(choice.inputs() if choice else {}), **others}


class _Model(NamedTuple):
    """The fields of the summary that identify the model."""

    model: str
    protocol: Meta | None
    self_test: SelfTestSummary


class _Evaluated(NamedTuple):
    """The evaluation of a model before it is summarised."""

    evaluation: Evaluation
    model: _Model


def _with_scores(
    source: Source, result: Result, scores: Path, train_cases: Path | None, workers: int | None
) -> _Evaluated:
    """Evaluate a scores file: line by line in workers if the order matches the cases, else joined by key."""
    coverage = HashCoverage()
    try:
        evaluation = join_parts(source, result, _parts(source, scores, train_cases, workers, coverage))
    except AlignmentError:
        joined = JoinedScores(source.cases, scores)
        evaluation = join_parts(source, result, evaluate_scored(source, track(joined, "evaluating")))
        coverage = joined.coverage
    result.findings += _hash_findings(coverage, result)
    self_test = SelfTestSummary(state="not applicable", why="the scores were made elsewhere")
    return _Evaluated(evaluation, _Model(scores.stem, None, self_test))


def _parts(
    source: Source, scores: Path, train_cases: Path | None, workers: int | None, coverage: HashCoverage
) -> Iterator[BatchResult]:
    """Evaluate the lines of both files in parallel, with one process per core for large files."""
    files = source.cases.line_files
    if files is None:
        raise AlignmentError
    if workers is None:
        is_large = sum(path.stat().st_size for path in files) > _WORTH_PROCESSES_BYTES
        # Every process would train the n-gram baseline again.
        workers = 0 if is_large and TRAINED_BASELINE not in source.baselines else 1
    function = partial(evaluate_lines, msgspec.json.encode(source.config), train_cases)
    parts = build("engines", "local", {"workers": workers}).map(function, side_by_side(files, scores))
    # Hashes detect repeated keys in little memory; at equal hashes one process joins by the keys themselves.
    keys, ids = array("q"), array("q")
    num_without_language = 0
    with bar("evaluating", None) as progress:
        for part in parts:
            keys.extend(map(hash, part.keys))
            ids.extend(hash(identifier) for identifier, _ in part.keys)
            num_without_language += part.num_without_language
            coverage.join(part.hashes)
            yield part
            progress.advance(len(part.columns.start))
    has_repeated_ids = len(np.unique(ids)) < len(ids)
    if has_repeated_ids and (num_without_language or len(np.unique(keys)) < len(keys)):
        raise AlignmentError


def _with_model(source: Source, result: Result, choice: ModelChoice, builder: Builder) -> _Evaluated:
    """Score the bench with a model, and evaluate the scores."""
    cases = source.cases
    source.check()
    model = builder(choice)
    self_test = self_tested(model, cases, name=choice.name, is_wanted=source.config.self_test)
    lines = scored_once(model, cases, result, name=choice.name)
    evaluation = join_parts(source, result, evaluate_scored(source, map(ScoredCase, cases, lines)))
    return _Evaluated(evaluation, _Model(choice.name, model.protocol(), self_test))


def _with_judge(source: Source, result: Result, choice: ModelChoice, builder: Builder) -> _Evaluated:
    """Ask a judge about the pairs of the bench through a ledger, which stays in the folder."""
    source.check()
    judge = builder(choice, ledger=result.path(LEDGER_FILE))
    assert isinstance(judge, JudgeModel), "a model with a jury is asked"
    check_bench(source.bench, judge)
    cases = tuple(source.cases)
    lines, judged = ask(judge, cases, source.columns(cases), seed=source.config.seed)
    self_test = self_tested(judge, cases, name=judge.name, is_wanted=source.config.self_test)
    if not source.config.allow_unscored:
        refuse_failed(judged)
    scored = list(map(ScoredCase, cases, map(with_hashes, cases, lines)))
    part = evaluate_batch(source, scored, judged)
    evaluation = join_parts(source, result, [part], judged)
    return _Evaluated(evaluation, _Model(judge.name, judge.protocol(), self_test))


def _with_few_labels(
    source: Source,
    people: Source,
    result: Result,
    *,
    choice: ModelChoice | None,
    scores: Path | None,
    builder: Builder,
) -> tuple[_Evaluated, PPISummary]:
    """Evaluate on people's labels of few prompts and the judge's of all; the model scores every prompt once.

    The labels are checked first: a model may score for hours.
    """
    config = source.config
    judged_files = [Path(file.path) for role, file in result.request.inputs.items() if role.startswith("judged.")]
    labels = separate_labels(
        source.cases,
        people.cases,
        config.pairs,
        path=judged_files[0],
        is_judges_alone=all(map(_is_ranked_by_judges, judged_files)),
    )
    result.findings += labels.findings()
    people.check()
    joined = None
    if scores is not None:
        joined = JoinedScores(source.cases, scores)
        scored = track(joined, "evaluating")
        model = _Model(scores.stem, None, SelfTestSummary(state="not applicable", why="the scores were made elsewhere"))
    else:
        assert choice is not None, "a model or scores"
        source.check()
        built = builder(choice)
        self_test = self_tested(built, source.cases, name=choice.name, is_wanted=source.config.self_test)
        lines = scored_once(built, source.cases, result, name=choice.name)
        scored = map(ScoredCase, source.cases, lines)
        model = _Model(choice.name, built.protocol(), self_test)
    few = evaluate_few_labels(source, people, scored, result, labels=labels, width=config.width)
    result.findings += _hash_findings(joined.coverage, result) if joined else ()
    return _Evaluated(few.evaluation, model), few.powered


def _hash_findings(coverage: HashCoverage, result: Result) -> tuple[InputFinding, ...]:
    inputs = result.request.inputs
    scored = "judged" if any(role.startswith("judged.") for role in inputs) else "bench"
    return coverage.findings(inputs["scores"], [file for role, file in inputs.items() if role.split(".")[0] == scored])


def _is_ranked_by_judges(file: Path) -> bool:
    """Return whether the record beside the file says that `resolve` ranked it by judgments of LLMs and models alone."""
    run = run_beside(file)
    if run is None or run.stage != "resolve" or run.outputs.get(file.name) != file_hash(file):
        return False
    kinds = run.config["only"].get("kind")
    return bool(kinds) and set(kinds) <= set(JUDGES)


def _counts(evaluation: Evaluation, noted: dict[str, int]) -> Counts:
    columns = evaluation.bench_pairs.columns
    num_cases, num_used = len(columns.start), int(columns.included.sum())
    is_unwinnable = np.bincount(columns.unwinnable[0], minlength=num_cases) > 0
    num_unwinnable = int((is_unwinnable & ~columns.included).sum())
    dropped = {"only pairs of equal texts": num_unwinnable, "no comparable pair": num_cases - num_used - num_unwinnable}
    left_out = {"pairs of equal texts, left out": evaluation.num_left_out} if evaluation.num_left_out else {}
    unlisted = {UNLISTED: columns.num_unlisted} if columns.num_unlisted else {}
    # Of a model that is asked, the outcomes of the pairs say what was read.
    is_scored = evaluation.judged is None
    coverage = coverage_counter(columns, evaluation.scores).notes() if is_scored else {}
    return Counts(
        num_in=num_cases,
        num_used=num_used,
        dropped={reason: number for reason, number in dropped.items() if number},
        noted={**noted, "pairs": len(columns.prompt), **left_out, **unlisted, **coverage},
    )
