"""The verb `evaluate`: a reward model, a judge, or a file of scores against the rankings of a benchmark."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from steelyard.core.types import InputFinding, JsonObject, Run
from steelyard.evaluation.benches import (
    BenchChoice,
    bench_name,
    check_bench_files,
    check_one_kind,
    find_bench_files,
    split_kinds,
)
from steelyard.evaluation.config import (
    Config,
    check_labels,
    check_model,
    check_settings,
    choose_baselines,
    choose_evaluated,
)
from steelyard.evaluation.evaluated_bench import Evaluation
from steelyard.evaluation.external_scores import evaluate_scores
from steelyard.evaluation.few_labels import evaluate_by_few_labels, refuse_judge
from steelyard.evaluation.headline import summarise
from steelyard.evaluation.model_evaluation import evaluate_judge, evaluate_model
from steelyard.evaluation.overlap import check_overlap, overlap_findings
from steelyard.evaluation.relabelled import RelabelledPairs, read_relabelled, sample_findings
from steelyard.evaluation.source import Source
from steelyard.evaluation.summary import EvaluationSummary, reversed_scores
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import MODEL, MODEL_SETTINGS, Option, SettingOption, Verb, in_panel, settings
from steelyard.plugins.reward_models import Builder, ModelChoice, build_model, forget_lines

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
    check_one_kind(kinds)
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
    check_model(config, model=model, scores=scores)
    check_labels(benches, human, judged, relabelled, config)
    check_settings(config)
    bench_paths = [*benches, *(path for path in (human, judged) if path is not None)]
    chosen = BenchChoice.of(config.bench_kind, config.bench, bench_paths, kept_prompts=kept_prompts)
    bench = chosen.bench
    config = replace(config, bench_kind=chosen.kind, bench=chosen.settings)
    choice = None if model is None else choose_evaluated(model, config, train_cases)
    baselines = choose_baselines(config, train_cases)
    settings = _resolved_settings(config, chosen, choice)
    files = find_bench_files(benches if human is None else [human], bench)
    judged_files = () if judged is None else find_bench_files([judged], bench)
    check_bench_files((*files, *judged_files), config.bench)
    if judged_files and choice is not None:
        refuse_judge(choice)
    inputs = _inputs(files, bench, choice=choice, scores=scores, train_cases=train_cases)
    inputs |= {f"judged.{number}": path for number, path in enumerate(judged_files, 1)}
    inputs |= {role: path for role, path in (("kept", kept_prompts), ("relabelled", relabelled)) if path is not None}

    def write(result: Result) -> None:
        cases = chosen.cases(judged_files or files)
        seen = check_overlap(cases, choice=choice, scores=scores, is_allowed=config.allow_overlap)
        again = None if relabelled is None else read_relabelled(relabelled, files, cases, config.pairs, chosen.kept_ids)
        # Baselines that read files are built first, so that their errors appear before the model scores.
        source = Source(cases, bench, config, {baseline.name: build_model(baseline) for baseline in baselines})
        powered = None
        if judged_files:
            people = source._replace(cases=chosen.cases(files))
            evaluated, powered = evaluate_by_few_labels(
                source, people, judged_files, result, choice=choice, scores=scores, builder=builder or build_model
            )
        elif scores is not None:
            evaluated = evaluate_scores(source, result, scores, train_cases, workers)
        else:
            assert choice is not None, "a model or scores"
            evaluate_choice = evaluate_judge if choice.judges else evaluate_model
            evaluated = evaluate_choice(source, result, choice, builder or build_model)
        forget_lines(result)
        evaluation, findings = _with_evidence_on_labels(evaluated.evaluation, again, chosen, judged_files or files)
        summary = summarise(evaluation)
        result.findings += (*cases.findings(), *findings, *reversed_scores(summary, evaluated.model.model))
        result.findings += overlap_findings(cases, seen, choice=choice, scores=scores, train_cases=[train_cases])
        result.summary = replace(
            summary,
            bench=bench_name(config.bench_kind, judged_files or files, config.bench),
            prediction_powered=powered,
            **evaluated.model._asdict(),
        )
        noted = {} if powered is None else {"judged prompts": powered.num_judged}
        noted |= {} if again is None else {"relabelled prompts": again.num_prompts}
        result.counts = evaluated.evaluation.counts(cases.warnings | seen | noted)

    return run_stage(out, "evaluate", Run[EvaluationSummary], write, config=settings, inputs=inputs, force=force)


def _with_evidence_on_labels(
    evaluation: Evaluation, again: RelabelledPairs | None, chosen: BenchChoice, files: Sequence[Path]
) -> tuple[Evaluation, tuple[InputFinding, ...]]:
    """Return the evaluation with relabelled pairs, or else the label error that the bench states, and findings."""
    if again is not None:
        return evaluation._replace(relabelled=again), sample_findings(
            evaluation.bench_pairs.columns, evaluation.values, again
        )
    stated, findings = chosen.stated_label_error(files, len(evaluation.bench_pairs.columns.start))
    return evaluation._replace(stated=stated), findings


def _resolved_settings(config: Config, chosen: BenchChoice, choice: ModelChoice | None) -> JsonObject:
    """Return the resolved settings, including model and bench: their equality makes two runs equal."""
    of_model = {"model_kind": choice.kind, "model": choice.settings} if choice else {"model_kind": None, "model": {}}
    return msgspec.to_builtins(config) | {"bench": chosen.resolved()} | of_model


def _inputs(
    files: Sequence[Path], bench: Any, *, choice: ModelChoice | None, scores: Path | None, train_cases: Path | None
) -> dict[str, Path]:
    """Return the files by role. The role of a bench file includes the subset of its name, which affects results."""
    subsets = [bench.subset_of(path.name) for path in files]
    roles = [f"bench.{number}" + (f".{subset}" if subset else "") for number, subset in enumerate(subsets, 1)]
    others = {role: path for role, path in (("scores", scores), ("train_cases", train_cases)) if path is not None}
    return {**dict(zip(roles, files, strict=True)), **(choice.inputs() if choice else {}), **others}
