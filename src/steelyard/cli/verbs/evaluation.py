"""Evaluate a reward model: the options of `evaluate`, and the lines that it prints."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.options import (
    MODEL,
    MODEL_SETTINGS,
    SettingOption,
    StageOption,
    Values,
    complete_baselines,
    complete_bench,
    in_panel,
)
from steelyard.cli.output import interval_text, judge_lines, missing_parts, next_line, percent_text
from steelyard.cli.verb import StageVerb
from steelyard.core.errors import ConfigError
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.evaluation.measures.accuracy import EnglishDrop
    from steelyard.evaluation.prediction_powered import PoweredSummary
    from steelyard.evaluation.summary import EvaluationSummary
    from steelyard.evaluation.tie_policies import Policy
    from steelyard.statistics.intervals import Estimate

_MAX_PARTS, _MAX_LOWEST = 4, 2
"""The most parts of a benchmark that the answer lists, and how many of more."""


def _read_bench_kind(inputs: Values, settings: Values) -> None:
    """Split `KIND=FILE` into the kind of bench and its path. A value that is an existing path has no kind."""
    from steelyard.evaluation.benches import split_kinds

    texts_by_input = {name: [inputs[name]] for name in ("human", "judged") if name in inputs} | {
        "benches": list(inputs.get("benches") or ())
    }
    files = {
        name: split_kinds(texts, is_path=lambda text: Path(text).exists()) for name, texts in texts_by_input.items()
    }
    kinds = {kind for by_kind in files.values() for kind in by_kind}
    if len(kinds) > 1:
        problem = f"two kinds of bench at once: {', '.join(sorted(kinds))}"
        raise ConfigError(problem, do="run `steelyard evaluate` for each kind")
    if kinds:
        (settings["bench_kind"],) = kinds
    for name, by_kind in files.items():
        paths = [Path(file) for texts in by_kind.values() for file in texts]
        inputs[name] = paths if name == "benches" else paths[0]


def _evaluate_answer(run: "Run[EvaluationSummary]", out: Path) -> Iterator[str]:
    summary = run.summary
    powered = summary.prediction_powered
    if powered is not None:
        yield from powered_lines(summary.model, powered)
        yield "by the human labels alone:"
    yield _accuracy_sentence(summary)
    yield from _coverage_lines(summary)
    if summary.bounds is not None:
        low, high = summary.bounds.accuracy.low, summary.bounds.accuracy.high
        yield f"  accuracy {low:.3f} with every unscored pair wrong, {high:.3f} with every one right"
    if summary.missing is not None:
        yield f"no overall value: {missing_parts(summary.missing)}"
    if summary.outcomes is not None:
        yield from islice(policy_lines(summary), None if summary.accuracy.value is None else 1)
    if summary.exact_match is not None:
        yield _row("exact match", summary.exact_match)
    parts = _parts_of(summary)
    worst_first = sorted(parts.items(), key=lambda part: 1.0 if part[1].value is None else part[1].value)
    shown = worst_first if len(parts) <= _MAX_PARTS else worst_first[:_MAX_LOWEST]
    if len(parts) > 1:
        yield from (_row(f"  {name}", part) for name, part in shown)
    if len(shown) < len(parts):
        yield f"  the lowest of {len(parts)}; --verbose prints all"
    if summary.tied.num_pairs:
        yield f"tied scores, counted wrong: {number_of(summary.tied.num_pairs, 'pair')} ({summary.tied.share:.1%})"
    yield next_line("report", out, "--out", "report.html", effect="shows where it fails; --verbose prints all figures")


def _parts_of(summary: "EvaluationSummary") -> "dict[str, Estimate]":
    """Return the values of the benchmark's sections, otherwise those of the categories."""
    if summary.sections:
        return {name: section for name, section in summary.sections.items() if section is not None}
    return {name: group.accuracy for name, group in summary.by_category.items()}


def _accuracy_sentence(summary: "EvaluationSummary") -> str:
    """Return the headline or the accuracy, its difference to the best length baseline, and that of n-grams."""
    name, accuracy = summary.model, summary.accuracy
    right = f"is right on {interval_text(accuracy)} of {number_of(accuracy.n, 'pair')}"
    if len(summary.by_category) > 1:
        right += f" (mean over {number_of(len(summary.by_category), 'category', 'categories')})"
    if accuracy.value is None:
        return f"{name} has no accuracy on {summary.bench}: too many pairs have no score or verdict."
    if summary.overall is not None:
        right = f"has {interval_text(summary.overall)} overall on {summary.bench}, and {right}"
    by_length = {kind: summary.baselines[kind] for kind in ("longer", "shorter") if kind in summary.baselines}
    if by_length and name not in by_length:
        best = max(by_length, key=lambda kind: by_length[kind].accuracy.value or 0.0)
        difference = interval_text(by_length[best].difference, "+")
        right += f", {difference} against the best length baseline ({best})"
    if ngram := summary.baselines.get("ngram"):
        right += f"; n-grams {interval_text(ngram.accuracy)}"
    return f"{name} {right}."


def powered_lines(name: str, powered: "PoweredSummary") -> Iterator[str]:
    """Yield the headline from both kinds of labels, what the judge is worth, and whether the prompts look alike."""
    headline = powered.ranked()
    prompts = f"{powered.num_labelled:,} of {powered.num_judged:,} prompts have human labels"
    if headline.estimate.value is None:
        yield f"{name} has no value from both kinds of labels: {headline.estimate.why}; {prompts}."
        return
    yield (f"{name} is right on {interval_text(headline.estimate)} by human and judge labels together; {prompts}.")
    worth = f"{headline.worth:.2f} human labels" if headline.weight else "one: the judge adds nothing"
    yield (
        f"  the judge correlates {headline.correlation:.2f} with people on a prompt: a human label with the judge's "
        f"counts as {worth}"
    )
    if headline.needed is not None:
        needed = headline.needed
        with_judge = "cannot be reached with" if needed.with_judge is None else f"needs {needed.with_judge:,} with"
        yield (
            f"  an interval of {needed.width:.1%} {with_judge} this judge and these prompts, "
            f"{needed.without_judge:,} human labels without the judge: {needed.more:,} more"
        )
    if powered.population.differs:
        yield (
            "  warning: the human-labelled prompts do not look like a random sample of all "
            f"(p = {powered.population.smallest_p:.4f}): draw them at random, or the interval is too short"
        )


def powered_details(powered: "PoweredSummary") -> Iterator[str]:
    """Yield every value from both kinds of labels, each with the value from human labels alone."""
    yield "from human and judge labels together, and from human labels alone (95% intervals)"
    for title, estimate in powered.values():
        alone = "none" if estimate.human_only.value is None else interval_text(estimate.human_only)
        yield _row(f"  {title}", estimate.estimate) + f"; alone {alone}; counts as {estimate.worth:.2f}"


def _evaluate_details(run: "Run[EvaluationSummary]", _: Path) -> Iterator[str]:
    from steelyard.evaluation.tables import plain_estimate

    summary = run.summary
    if summary.prediction_powered is not None:
        yield from powered_details(summary.prediction_powered)
        yield "by the human labels alone:"
    yield f"{summary.model} on {summary.bench} (95% intervals)"
    for title in ("overall", "overall_with_prior_sets"):
        estimate = getattr(summary, title)
        if estimate is not None:
            yield _row(title.replace("_", " "), estimate)
    yield from _bench_lines(summary)
    if summary.missing is not None:
        yield f"no overall value: {missing_parts(summary.missing)}"
    for title in ("accuracy", "exact_match", "accuracy_micro", "exact_match_micro"):
        yield _row(title.replace("_", " "), getattr(summary, title))
        if summary.bounds is not None:
            bounds = getattr(summary.bounds, title)
            yield f"    {bounds.low:.3f} with every unscored pair wrong, {bounds.high:.3f} with every one right"
    for name, group in summary.by_category.items():
        yield _row(f"  {name}", group.accuracy)
    yield f"tied scores, counted wrong: {number_of(summary.tied.num_pairs, 'pair')} ({summary.tied.share:.1%})"
    yield from policy_lines(summary)
    yield from _tie_lines(summary)
    for measure, result in summary.measured():
        yield from measure.lines(result)
    for name, baseline in summary.baselines.items():
        difference = plain_estimate(baseline.difference)
        yield _row(f"baseline {name}", baseline.accuracy) + f"; model minus baseline {difference}"


def policy_lines(summary: "EvaluationSummary") -> Iterator[str]:
    """Yield the outcomes of the pairs, and accuracy and exact match with missing verdicts counted in three ways.

    A model that gave scores has none; without a headline there is a range, and no number.
    """
    if summary.outcomes is None:
        return
    from msgspec.structs import asdict

    outcomes, policies = asdict(summary.outcomes), summary.policies or {}
    num_pairs, _ = outcomes.pop("num_pairs"), outcomes.pop("by_language")
    listed = ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in outcomes.items() if number)
    yield f"of {number_of(num_pairs, 'pair')}: {listed}"
    if summary.accuracy.value is None:
        low, high = (policies[ties].accuracy.value for ties in ("wrong", "right"))
        yield "no headline: a request failed, or more than half of the pairs have no verdict"
        yield f"  accuracy is between {low:.1%} and {high:.1%}: missing verdicts counted wrong, and right"
    else:
        yield from (f"  ties and missing verdicts {name}: {_policy(policy)}" for name, policy in policies.items())
    yield from judge_lines(summary.judges or {})


def _policy(policy: "Policy") -> str:
    overall = "" if policy.overall is None else f"overall {percent_text(policy.overall)}, "
    exact = "" if policy.exact_match is None else f", exact match {percent_text(policy.exact_match)}"
    return f"{overall}accuracy {percent_text(policy.accuracy)}{exact}"


def _tie_lines(summary: "EvaluationSummary") -> Iterator[str]:
    """Yield the policies for ties of a model that gave scores, where some are tied or missing."""
    from steelyard.evaluation.tables import plain_estimate, plain_row

    if summary.outcomes is not None or summary.policies is None:
        return
    half, right = summary.policies["half"], summary.policies.get("right")
    if right is not None and summary.tied.num_pairs:
        yield plain_row("  counted half, and right", half.accuracy, f"; {plain_estimate(right.accuracy)}")
    if half.headline and (summary.tied.num_pairs or summary.unscored is not None):
        yield plain_row(
            f"  {half.headline}, half a point", getattr(half, half.headline), "; for ties and unscored pairs"
        )


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
        yield f"no value with prior sets: {missing_parts(summary.prior_sets_missing)}"


def _drop_line(drop: "EnglishDrop[Estimate]") -> str:
    from steelyard.evaluation.tables import plain_estimate

    if drop.why is not None or drop.relative is None:
        return f"no drop from English: {drop.why}"
    return f"{'drop from English':26} {plain_estimate(drop.absolute)}; of English {plain_estimate(drop.relative)}"


def _coverage_lines(summary: "EvaluationSummary") -> Iterator[str]:
    """Yield how many responses were cut or left without a score, and how these count."""
    from steelyard.evaluation.coverage import coverage_lines

    if summary.coverage is not None:
        yield from coverage_lines(summary.coverage)
    if summary.unscored is not None:
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in summary.unscored.by_reason.items())
        yield (
            f"{number_of(summary.unscored.num_pairs, 'pair')} {verb_for(summary.unscored.num_pairs, 'has', 'have')} "
            f"an unscored response ({reasons}): below they count as wrong"
        )


def _row(title: str, estimate: "Estimate") -> str:
    from steelyard.evaluation.tables import plain_row

    return plain_row(title, estimate, f"  n={estimate.n:,}")


def _parse_baselines(names: str) -> list[str]:
    return [] if names == "none" else [name.strip() for name in names.split(",")]


EVALUATE = StageVerb(
    "evaluate",
    """Evaluate a reward model, or scores made elsewhere, with intervals and next to simple baselines.

    A pair is right when the better response has the strictly greater score; a prompt is an exact match when all of its
    pairs are right. The headline is the mean over the top categories; intervals are over prompts. Before it
    scores, a model is tested on a few of the cases: batches, equal bits, packing, BOS token, last token, head, length.

    Example: `steelyard evaluate --bench test.jsonl --model my-model --out result`

    Example: `steelyard evaluate --bench cheemsbench=open.jsonl --bench cheemsbench=human.jsonl --model model --out out`

    Example: `steelyard evaluate --bench rmb=RMB_dataset --model model --out rmb`

    Example: `steelyard evaluate --human few.jsonl --judged many.jsonl --width 0.1 --model my-model --out powered`

    Example: `steelyard evaluate --bench rewardbench=filtered.parquet --scores scores.jsonl --out rewardbench`
    """,
    (
        StageOption(
            "benches",
            "[KIND=]FILE, folder or quoted pattern; repeat. Without KIND, case files. Kinds: steelyard list benches.",
            "--bench",
            complete=complete_bench,
            is_text=True,
            is_optional=True,
        ),
        StageOption("out", "The folder for run.json, items and scores."),
        MODEL,
        StageOption("scores", "Scores made elsewhere (docs/formats.md)."),
        *in_panel(
            "Baselines",
            SettingOption(
                "baselines",
                note="With commas; or none.",
                complete=complete_baselines,
                parse=_parse_baselines,
                is_text=True,
            ),
            StageOption("train_cases", "The training file: the n-gram baseline learns from it."),
        ),
        *in_panel(
            "Few human and many judge labels, instead of --bench",
            StageOption("human", "[KIND=]FILE: people's rankings of a random part of the prompts.", is_text=True),
            StageOption(
                "judged", "[KIND=]FILE: a judge's rankings of all prompts, those of --human too.", is_text=True
            ),
            SettingOption("width"),
        ),
        *in_panel("Model", *MODEL_SETTINGS, SettingOption("self_test", "--no-self-test")),
        *in_panel("Counting", *map(SettingOption, ("pairs", "metric_compat", "allow_unscored"))),
        StageOption("workers", "Processes that read --scores. Default: one a core."),
    ),
    _evaluate_answer,
    _evaluate_details,
    _read_bench_kind,
)
