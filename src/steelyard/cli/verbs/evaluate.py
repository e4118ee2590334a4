"""The verb `evaluate` on the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from steelyard.cli.completion import complete_baselines, complete_bench, complete_model
from steelyard.cli.model_options import (
    ChatTemplateOption,
    MaxLengthOption,
    OverLengthOption,
    with_model_options,
)


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


def _lines(summary: dict[str, Any]) -> Iterator[str]:
    """What a person wants to see first: the bench's headline, the means, the categories, the baselines."""
    from steelyard.cli.judged import policy_lines
    from steelyard.cli.measured import measure_lines

    yield f"{summary['model']} on {summary['bench']} (95 % intervals)"
    yield from _coverage(summary)
    for title in ("overall", "overall_with_prior_sets"):
        if title in summary:
            yield _row(title.replace("_", " "), summary[title])
    yield from _bench_lines(summary)
    if "missing" in summary:
        yield f"no overall value, for want of: {_absent(summary['missing'])}"
    for title in ("accuracy", "exact_match", "accuracy_micro", "exact_match_micro"):
        yield _row(title.replace("_", " "), summary[title])
        if "bounds" in summary:
            low, high = (summary["bounds"][title][end] for end in ("low", "high"))
            yield f"    {low:.3f} with every unscored pair wrong, {high:.3f} with every one right"
    for name, own in summary["by_category"].items():
        yield _row(f"  {name}", own["accuracy"])
    yield f"tied scores, counted wrong: {summary['tied']['num_pairs']:,} pairs ({summary['tied']['share']:.1%})"
    yield from policy_lines(summary)
    yield from measure_lines(summary)
    for name, own in summary["baselines"].items():
        yield _row(f"baseline {name}", own["accuracy"]) + f"; model minus baseline {_number(own['difference'])}"


def _bench_lines(summary: dict[str, Any]) -> Iterator[str]:
    """The bench's own parts: sections, subsets with their exact match, and what stands beside the headline."""
    for name, own in summary.get("sections", {}).items():
        yield _row(f"  {name}", own)
    for name, own in summary.get("subsets", {}).items():
        yield _row(f"  {name}", own["accuracy"])
        yield _row("    exact match", own["exact_match"])
        for category, one in own.get("by_category", {}).items():
            yield _row(f"    {category}", one["accuracy"])
    if "variance" in summary:
        # In squared percentage points, as M-RewardBench prints it.
        own = summary["variance"]
        yield f"{'variance over languages':26} {own['value'] * 100**2:.1f}  n={own['n']}"
    if "drop_from_english" in summary:
        yield _drop_line(summary["drop_from_english"])
    if "prior_sets_missing" in summary:
        yield f"no value with prior sets, for want of: {_absent(summary['prior_sets_missing'])}"


def _drop_line(own: dict[str, Any]) -> str:
    if "why" in own:
        return f"no drop from English: {own['why']}"
    return f"{'drop from English':26} {_number(own['absolute'])}; of English {_number(own['relative'])}"


def _absent(missing: dict[str, str]) -> str:
    return ", ".join(f"{name} ({why})" for name, why in missing.items())


def _coverage(summary: dict[str, Any]) -> Iterator[str]:
    """What was cut or left without a score, and how that counts."""
    from steelyard.evaluation.measures.coverage import coverage_lines

    yield from coverage_lines(summary["coverage"]) if "coverage" in summary else ()
    if "unscored" in summary:
        own = summary["unscored"]
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in own["by_reason"].items())
        yield f"{own['num_pairs']:,} pairs have an end without a score ({reasons}): below they count as wrong"


def _row(title: str, estimate: dict[str, Any]) -> str:
    return f"{title:26} {_number(estimate)}  n={estimate['n']:,}"


def _number(estimate: dict[str, Any]) -> str:
    if estimate["value"] is None:
        return "none"
    if estimate["low"] is None:
        return f"{estimate['value']:.3f}" + (f" [{estimate['why']}]" if estimate.get("why") else "")
    return f"{estimate['value']:.3f} [{estimate['low']:.3f}, {estimate['high']:.3f}]"
