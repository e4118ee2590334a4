"""The verb `evaluate` on the command line."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.completion import complete_baselines, complete_bench, complete_model
from steelyard.cli.model_options import (
    ChatTemplateOption,
    MaxLengthOption,
    OverLengthOption,
    with_model_options,
)

if TYPE_CHECKING:
    from steelyard.evaluation.measures.accuracy import EnglishDrop
    from steelyard.evaluation.summary import EvaluationSummary
    from steelyard.statistics.intervals import Estimate


def command(
    *,
    bench: Annotated[
        list[str],
        typer.Option(
            autocompletion=complete_bench,
            help="[KIND=]FILE; repeat. Without a kind: a case file. Kinds: steelyard list benches.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder for run.json, items.jsonl and scores.jsonl.")],
    model: Annotated[
        str | None,
        typer.Option(autocompletion=complete_model, help="A trained model's folder, or a kind: steelyard list models."),
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Scores made elsewhere, instead of --model: one line for each case.")
    ] = None,
    train_cases: Annotated[
        Path | None, typer.Option(help="The training file: the n-gram baseline learns from it.")
    ] = None,
    baselines: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete_baselines, help="Some of longer,shorter,random,first,ngram; or none. Default: all."
        ),
    ] = None,
    pairs: Annotated[str | None, typer.Option(help="Which pairs count: tiers, reachable, judged or listed.")] = None,
    metric_compat: Annotated[
        str | None, typer.Option(help="cheems: count exact match as its published code does.")
    ] = None,
    over_length: OverLengthOption = None,
    max_length: MaxLengthOption = None,
    chat_template: ChatTemplateOption = None,
    allow_unscored: Annotated[
        bool,
        typer.Option("--allow-unscored", help="Accept scores that are missing for other reasons than length."),
    ] = False,
    no_self_test: Annotated[
        bool, typer.Option("--no-self-test", help="Skip the tests of the model before it scores; the run records it.")
    ] = False,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="seed=1, num_resamples=…, matched_ratio=1.1, model.KEY=…, bench.KEY=…; repeat."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="How many processes read --scores. Default: one for each core, for large files."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """Evaluate a reward model, or scores made elsewhere, with intervals and next to simple baselines.

    A pair is right when the better response has the strictly greater score; a prompt is an exact match when all of its
    pairs are right. The headline is the mean over the top categories; intervals are a bootstrap over prompts. Before it
    scores, a model is tested on a few of the cases: batches, packing, beginning mark, last token, head, length.

    Example: `steelyard evaluate --bench test.jsonl --model my-model --out result`

    Example: `steelyard evaluate --bench cheemsbench=open.jsonl --bench cheemsbench=human.jsonl --model model --out out`

    Example: `steelyard evaluate --bench rewardbench=filtered.parquet --scores scores.jsonl --out rewardbench`
    """
    from steelyard.cli.shown import show
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.stages.evaluate import Config, evaluate

    kind, files = _kind_and_files(bench)
    given = {"pairs": pairs, "metric_compat": metric_compat, "bench_kind": kind}
    read = {"over_length": over_length, "max_length": max_length, "chat_template": chat_template}
    settings = with_model_options(parse_settings(setting or ()), **read)
    settings |= {key: value for key, value in given.items() if value is not None}
    if baselines is not None:
        settings["baselines"] = [] if baselines == "none" else [name.strip() for name in baselines.split(",")]
    if allow_unscored:
        settings["allow_unscored"] = True
    if no_self_test:
        settings["self_test"] = False
    config = resolve_config(Config, settings, where="evaluate")
    own: dict[str, Any] = {"model": model, "scores": scores, "train_cases": train_cases}
    run = evaluate(files, out, config, **own, workers=workers, force=force)
    show(run, _lines(run.summary), as_json=as_json)


def _kind_and_files(given: list[str]) -> tuple[str, list[Path]]:
    """One kind of bench and its files. A value that names an existing file is that file, whatever signs it holds."""
    from steelyard.core.errors import ConfigError

    kinds: list[str] = []
    files: list[Path] = []
    for value in given:
        kind, equals, file = value.partition("=")
        is_plain = not equals or Path(value).exists()
        kinds.append("cases" if is_plain else kind)
        files.append(Path(value if is_plain else file))
    if len(set(kinds)) > 1:
        raise ConfigError(
            f"two kinds of bench at once: {', '.join(sorted(set(kinds)))}", do="run `steelyard evaluate` for each kind"
        )
    return kinds[0], files


def _lines(summary: "EvaluationSummary") -> Iterator[str]:
    """Yield the bench's headline, the means, the categories, ties, the measures and the baselines."""
    from steelyard.cli.judged import policy_lines
    from steelyard.evaluation.tables import plain_estimate

    yield f"{summary.model} on {summary.bench} (95 % intervals)"
    yield from _coverage(summary)
    for title in ("overall", "overall_with_prior_sets"):
        estimate = getattr(summary, title)
        if estimate is not None:
            yield _row(title.replace("_", " "), estimate)
    yield from _bench_lines(summary)
    if summary.missing is not None:
        yield f"no overall value, for want of: {_absent(summary.missing)}"
    for title in ("accuracy", "exact_match", "accuracy_micro", "exact_match_micro"):
        yield _row(title.replace("_", " "), getattr(summary, title))
        if summary.bounds is not None:
            bounds = getattr(summary.bounds, title)
            yield f"    {bounds.low:.3f} with every unscored pair wrong, {bounds.high:.3f} with every one right"
    for name, group in summary.by_category.items():
        yield _row(f"  {name}", group.accuracy)
    yield f"tied scores, counted wrong: {summary.tied.num_pairs:,} pairs ({summary.tied.share:.1%})"
    yield from policy_lines(summary)
    yield from _tie_lines(summary)
    for measure, result in summary.measured():
        yield from measure.lines(result)
    for name, baseline in summary.baselines.items():
        difference = plain_estimate(baseline.difference)
        yield _row(f"baseline {name}", baseline.accuracy) + f"; model minus baseline {difference}"


def _tie_lines(summary: "EvaluationSummary") -> Iterator[str]:
    """Yield the policies for ties of a model that gave scores, where some are tied or missing."""
    from steelyard.evaluation.tables import plain_estimate, plain_row

    if summary.outcomes is not None or summary.policies is None:
        return
    half, right = summary.policies["half"], summary.policies.get("right")
    if right is not None and summary.tied.num_pairs:
        yield plain_row("  counted half, and right", half.accuracy, f"; {plain_estimate(right.accuracy)}")
    if half.headline and (summary.tied.num_pairs or summary.unscored is not None):
        title = f"  {half.headline}, half a point"
        yield plain_row(title, getattr(half, half.headline), "; for ties and what has no score")


def _bench_lines(summary: "EvaluationSummary") -> Iterator[str]:
    """Yield the bench's own parts: sections, subsets with their exact match, and further values."""
    for name, section in (summary.sections or {}).items():
        yield _row(f"  {name}", section)
    for name, subset in (summary.subsets or {}).items():
        yield _row(f"  {name}", subset.accuracy)
        if subset.exact_match is not None:
            yield _row("    exact match", subset.exact_match)
        for category, group in (subset.by_category or {}).items():
            yield _row(f"    {category}", group.accuracy)
    if summary.variance is not None and summary.variance.value is not None:
        # In squared percentage points, as M-RewardBench prints it.
        yield f"{'variance over languages':26} {summary.variance.value * 100**2:.1f}  n={summary.variance.n}"
    if summary.drop_from_english is not None:
        yield _drop_line(summary.drop_from_english)
    if summary.prior_sets_missing is not None:
        yield f"no value with prior sets, for want of: {_absent(summary.prior_sets_missing)}"


def _drop_line(drop: "EnglishDrop[Estimate]") -> str:
    from steelyard.evaluation.tables import plain_estimate

    if drop.why is not None or drop.relative is None:
        return f"no drop from English: {drop.why}"
    return f"{'drop from English':26} {plain_estimate(drop.absolute)}; of English {plain_estimate(drop.relative)}"


def _absent(missing: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({why})" for name, why in missing.items())


def _coverage(summary: "EvaluationSummary") -> Iterator[str]:
    """Yield how many responses were cut or left without a score, and how these count."""
    from steelyard.evaluation.coverage import coverage_lines

    if summary.coverage is not None:
        yield from coverage_lines(summary.coverage)
    if summary.unscored is not None:
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in summary.unscored.by_reason.items())
        yield f"{summary.unscored.num_pairs:,} pairs have an end without a score ({reasons}): below they count as wrong"


def _row(title: str, estimate: "Estimate") -> str:
    from steelyard.evaluation.tables import plain_row

    return plain_row(title, estimate, f"  n={estimate.n:,}")
