"""Comparisons and reports: finished evaluations side by side and by language, and pages of runs."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from steelyard.cli.options import SettingOption, StageArgument, StageOption, Values
from steelyard.cli.output import TerminalTable, interval_text, missing_parts, next_line, powered_difference_lines
from steelyard.cli.verb import FunctionVerb, StageVerb
from steelyard.core.errors import OutputError
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Run
from steelyard.io.progress import log

if TYPE_CHECKING:
    from steelyard.evaluation.comparison import ComparisonSummary, ModelDifference
    from steelyard.evaluation.languages import LanguagesSummary
    from steelyard.evaluation.leaderboard import LeaderboardSummary
    from steelyard.stages.report import ReportSummary
    from steelyard.statistics.aggregation import Drop

_LEVEL = 0.05
_HOST = "127.0.0.1"
_MAX_ROWS = 5
_MAX_LOWEST = 3
_PAGES = (".html", ".htm")
_OTHER_FORMATS = (".pdf", ".md", ".txt", ".json", ".docx", ".png", ".svg")


def _unequal_coverage_lines(summary: "ComparisonSummary | LeaderboardSummary", ranks: str) -> Iterator[str]:
    if summary.unlike_coverage:
        yield "unequal shares of responses read: differences are partly due to length limits; unscored pairs count as"
        yield f"wrong. {ranks} also hold with the pairs counted as right that only the worse model has no score for:"
        yield from (f"  {sentence}" for sentence in summary.unlike_coverage)


def _compare_answer(run: "Run[ComparisonSummary]", out: Path) -> Iterator[str]:
    summary = run.summary
    number, significant = len(summary.comparisons), [pair for pair in summary.comparisons if _is_significant(pair)]
    if number == 1:
        yield _pair_sentence(summary.comparisons[0], summary.ranked_by)
        yield from powered_difference_lines(summary.comparisons[0].prediction_powered)
    else:
        yield (
            f"{len(significant)} of {number_of(number, 'difference')} {verb_for(len(significant), 'is', 'are')} "
            f"significant ({summary.ranked_by}, {summary.correction})."
        )
    if summary.missing:
        yield f"no headline: {missing_parts(summary.missing)}"
    yield from islice(_rank_lines(summary), _MAX_ROWS)
    if len(summary.models) > _MAX_ROWS:
        yield f"  … {number_of(len(summary.models) - _MAX_ROWS, 'more model')}: --verbose"
    yield from _unequal_coverage_lines(summary, "Ranks")
    yield next_line("report", out, "--out", "report.html", effect="shows it; --verbose prints every difference")


def _is_significant(difference: "ModelDifference") -> bool:
    return difference.p_bounded < _LEVEL


def _detectable(size: float) -> str:
    """Return the smallest difference that the prompts can show; shares differ by 1 at most."""
    return f"detectable is a difference of {size:.3f}" if size <= 1 else "too few prompts to detect any difference"


def _pair_sentence(difference: "ModelDifference", ranked_by: str) -> str:
    """Return whether the two models differ, by how much, and what this many prompts can show."""
    first, second, ranked = difference.first, difference.second, difference.ranked
    if ranked.value is not None and ranked.low is not None and ranked.high is not None and ranked.value < 0:
        first, second = second, first
        ranked = replace(ranked, value=-ranked.value, low=-ranked.high, high=-ranked.low)
    verdict = "is better than" if _is_significant(difference) else "does not differ significantly from"
    value = f"{interval_text(ranked, '+')} {ranked_by}"
    detectable = "" if _is_significant(difference) else f"; {_detectable(difference.detectable)}"
    return f"{first} {verdict} {second} ({value}, p {_p(difference.p_bounded)}{detectable})."


def _rank_lines(summary: "ComparisonSummary") -> Iterator[str]:
    for model in summary.models:
        best, worst = model.best_rank, model.worst_rank
        rank = f"rank {best}" if best == worst else f"rank {best} to {worst}"
        value = "" if summary.ranked_by == "accuracy" else f"{summary.ranked_by} {interval_text(model.value)}, "
        bounds = "" if model.bounds is None else f" ({model.bounds.high:.3f} if every unscored pair were right)"
        yield f"  {model.name}: {value}accuracy {interval_text(model.accuracy)}{bounds}, {rank}"


def _compare_details(run: "Run[ComparisonSummary]", _: Path) -> Iterator[str]:
    summary = run.summary
    yield f"{number_of(len(summary.models), 'model')} on {summary.bench}, ranked by {summary.ranked_by} (95% intervals)"
    yield from _rank_lines(summary)
    for difference in summary.comparisons:
        yield from _difference_lines(difference, summary.ranked_by)
    yield f"p corrected for {number_of(len(summary.comparisons), 'comparison')} ({summary.correction})"


def _difference_lines(difference: "ModelDifference", ranked_by: str) -> Iterator[str]:
    from steelyard.evaluation.measure import paired_titles

    start, headline = f"{difference.first} minus {difference.second}:", difference.headline
    if headline is not None:
        value = f"{ranked_by} {interval_text(headline, '+')}"
        yield f"{start} {value}, p {_p(headline.p)}, corrected {_p(headline.p_corrected)}"
        start = " "
    yield f"{start} accuracy {interval_text(difference.accuracy, '+')}"
    yield from powered_difference_lines(difference.prediction_powered)
    if difference.p_ranked < _LEVEL <= difference.p_bounded:
        bounded = _p(difference.p_bounded)
        yield f"  not significant: p {bounded} if the pairs that only the worse model has no score for count as right"
    yield (
        f"  p {_p(difference.p_accuracy)}, corrected {_p(difference.p_accuracy_corrected)}; "
        f"{_detectable(difference.detectable)} (power 80%)"
    )
    yield (
        f"  exact match {interval_text(difference.exact_match, '+')}: {number_of(difference.only_first, 'prompt')} "
        "right by the "
        f"first alone, {difference.only_second:,} by the second; McNemar p {_p(difference.p_exact_match)}"
    )
    titles = paired_titles()
    for name, measure in difference.measures.items():
        if measure.p is not None and measure.p_corrected is not None:
            value = interval_text(measure.difference, "+")
            yield f"  {titles[name]} {value}, p {_p(measure.p)}, corrected {_p(measure.p_corrected)}"


def _p(value: float) -> str:
    return f"{value:.4f}" if value >= 0.0001 else "< 0.0001"


COMPARE = StageVerb(
    "compare",
    """Compare models on the same prompts: significant differences, and the smallest that this many prompts can show.

    Each bootstrap sample of prompts serves both models of a pair; p-values are corrected for the number of pairs.
    Evaluations of different prompts, or by different rules, are refused.

    Example: `steelyard compare evaluated-a evaluated-b --out compared`
    """,
    (
        StageArgument("runs", "Evaluations of the same file: --out folders, folders of runs, or quoted patterns."),
        StageOption("out", "The folder for the result, run.json."),
    ),
    _compare_answer,
    _compare_details,
)


def _languages_answer(run: "Run[LanguagesSummary]", out: Path) -> Iterator[str]:
    summary = run.summary
    others = {name: values for name, values in summary.languages.items() if name != summary.baseline_language}
    baseline = interval_text(summary.languages[summary.baseline_language].overall)
    yield (
        f"{summary.model} has {interval_text(summary.mean)} on average over {number_of(len(others), 'language')}, "
        f"a drop of {interval_text(summary.drop.absolute)} from {summary.baseline_language} ({baseline})."
    )
    if summary.missing:
        yield f"an incomplete bench, averaged over the parts present; {missing_parts(summary.missing)}"
    if not summary.are_read_alike:
        yield "unequal shares of responses read: drops are partly due to length limits; unscored pairs are wrong"
    lowest = sorted(others.items(), key=lambda pair: pair[1].overall.value or 0.0)[:_MAX_LOWEST]
    yield from (f"  {name}: {interval_text(values.overall)}" for name, values in lowest)
    if len(lowest) < len(others):
        yield f"  the lowest of {len(others)}; --verbose prints all"
    yield f"on {number_of(summary.num_shared, 'item')} that all {len(summary.languages)} languages have"
    yield next_line("report", out, "--out", "report.html", effect="shows families, scripts and sections")


def _languages_details(run: "Run[LanguagesSummary]", _: Path) -> Iterator[str | TerminalTable]:
    summary = run.summary
    baseline = summary.baseline_language
    yield f"{summary.model} on {summary.bench} by language (95% intervals, clustered by item)"
    yield f"on {number_of(summary.num_shared, 'item')} that all {len(summary.languages)} languages have"
    if summary.left_out:
        counts = ", ".join(f"{name} {number:,}" for name, number in summary.left_out.items())
        yield f"left out, since not every language has them: {counts}"
    if summary.missing:
        yield f"an incomplete bench, averaged over the parts present; {missing_parts(summary.missing)}"
    yield _language_table(summary)
    if summary.coverage:
        from steelyard.evaluation.coverage import coverage_lines

        if not summary.are_read_alike:
            yield "unequal shares of responses read: drops are partly due to length limits; unscored pairs are wrong"
        yield from coverage_lines(summary.coverage)
    yield f"mean without {baseline}: {interval_text(summary.mean)}"
    yield f"its drop from {baseline}: {', of it '.join(_drop(summary.drop))}"
    for name, drop in summary.drop.sections.items():
        yield f"  {name}: {', '.join(_drop(drop))}"
    if summary.standard_deviation:
        yield f"standard deviation over languages: {interval_text(summary.standard_deviation)}"
    yield f"mean kappa: {interval_text(summary.kappa)}"
    for field, groups in summary.kin.items():
        for name, group in groups.items():
            yield f"  {field.replace('_', ' ')} {name}: {interval_text(group.mean)}  {', '.join(group.languages)}"


def _drop(drop: "Drop") -> tuple[str, str]:
    """Return the difference, and its share of English."""
    share = "none" if drop.relative.value is None else f"{drop.relative.value:+.1%}"
    return interval_text(drop.absolute, "+"), share


def _language_table(summary: "LanguagesSummary") -> TerminalTable:
    baseline = summary.baseline_language
    best_first = sorted(summary.languages.items(), key=lambda pair: -(pair[1].overall.value or 0.0))
    rows = [
        (
            name,
            interval_text(values.overall),
            *(_drop(values.drop) if values.drop else ("", "")),
            interval_text(values.kappa) if values.kappa else "",
        )
        for name, values in best_first
    ]
    heads = ("overall", f"drop from {baseline}", f"of {baseline}", f"kappa with {baseline}")
    return TerminalTable("by language", heads, rows)


LANGUAGES = StageVerb(
    "languages",
    """Break one evaluation down by language: the drop from English, agreement with it, families, scripts, resources.

    All numbers follow the bench's own sections and weights, on the items that all compared languages have. Kappa
    measures how far the model prefers the same answers in a language as in English. Translations of one item are
    resampled together.

    Example: `steelyard languages evaluated --out languages`
    """,
    (
        StageArgument("evaluated", "The --out folder of an evaluation of parallel items."),
        StageOption("out", "The folder for the result, run.json."),
        SettingOption("baseline_language"),
        SettingOption("languages", note="Repeat."),
    ),
    _languages_answer,
    _languages_details,
)


def _leaderboard_answer(run: "Run[LeaderboardSummary]", out: Path) -> Iterator[str]:
    summary = run.summary
    if summary.rows:
        first, equals = summary.rows[0], [row.name for row in summary.rows[1:] if row.best_rank == 1]
        tied = f"; {len(equals)} more may be first" if equals else ", ahead of all others"
        ranked_by = summary.ranked_by.replace("_", " ")
        yield (
            f"{first.name} is first of {number_of(len(summary.rows), 'model')} by {ranked_by}{tied} "
            f"({summary.correction})."
        )
    else:
        yield "no model has a headline: none is ranked."
    if summary.missing:
        yield (
            f"an incomplete bench without a headline: {number_of(len(summary.missing), 'part')} "
            f"{verb_for(len(summary.missing), 'is', 'are')} missing, see the page"
        )
    yield from islice(_board_rows(summary), _MAX_ROWS)
    if len(summary.rows) > _MAX_ROWS:
        yield f"  … {number_of(len(summary.rows) - _MAX_ROWS, 'more model')}: --verbose"
    yield from _unequal_coverage_lines(summary, "Ranks and letters")
    if summary.partial:
        yield f"without a headline: {', '.join(unranked.name for unranked in summary.partial)}"
    yield f"the page: {out / 'leaderboard.html'}"


def _leaderboard_details(run: "Run[LeaderboardSummary]", _: Path) -> Iterator[str]:
    summary = run.summary
    yield (
        f"{number_of(len(summary.rows), 'model')} on {summary.bench}, {number_of(summary.num_prompts, 'prompt')} "
        "(95% intervals)"
    )
    yield f"ranked by {summary.ranked_by.replace('_', ' ')}: {summary.about}"
    yield from _board_rows(summary)
    yield f"models that share a letter do not differ significantly ({summary.correction})"
    yield from (f"without a headline: {unranked.name}: {unranked.why}" for unranked in summary.partial)


def _board_rows(summary: "LeaderboardSummary") -> Iterator[str]:
    from steelyard.report.leaderboard import rank_range, value_with_interval

    for row in summary.rows:
        numbers = row.by_column
        values = ", ".join(
            f"{name.replace('_', ' ')} {value_with_interval(numbers['headline', name])}"
            for name in dict.fromkeys((summary.ranked_by, "accuracy"))
        )
        yield (
            f"  {rank_range(row.best_rank, row.worst_rank):>5} {row.group:3} {row.name}: {values}, "
            f"first in {row.rank_shares[0]:.0%} of resamples"
        )


LEADERBOARD = StageVerb(
    "leaderboard",
    """One table of many evaluations, with the ranks that the data allow: a page to sort, CSV, Markdown and JSON.

    Evaluations by different protocols are refused, with a list of the differences: another bench, other pairs, no
    self-tests, another number type or length within a family of models. Partial evaluations are listed apart.

    Example: `steelyard leaderboard evaluated-a evaluated-b --out board`

    Example: `steelyard leaderboard evaluated-a evaluated-b --set 'allow_differing=["max_length"]' --out board`
    """,
    (
        StageArgument("runs", "Evaluations of one bench: --out folders, folders of runs, or quoted patterns."),
        StageOption("out", "The folder for leaderboard.html, .csv, .md and run.json."),
    ),
    _leaderboard_answer,
    _leaderboard_details,
)


def _check_page_name(inputs: Values, settings: Values) -> None:
    """Raise OutputError for a file that is not a page of HTML."""
    out: Path = inputs["out"]
    if out.suffix.lower() in _OTHER_FORMATS and not out.is_dir():
        raise OutputError(
            "a report is a page of HTML",
            where=str(out),
            allowed="a name ending in .html, or a folder",
            do="open the page in a browser and print it, where another kind is needed",
        )


def _report_lines(run: "Run[ReportSummary]", out: Path) -> Iterator[str]:
    page = out if out.suffix.lower() in _PAGES else out / "report.html"
    summary = run.summary
    yield (
        f"{page} shows {number_of(len(summary.runs), 'run')} and {number_of(summary.num_items, 'item')} "
        f"({summary.num_bytes / 2**20:.1f} MB): open it in a browser."
    )


REPORT = StageVerb(
    "report",
    """Write one HTML page about finished runs: numbers with intervals, figures, and every prompt to look into.

    The page is one file and needs no network. It is in English and Chinese, with light and dark colours, for phones
    too.

    Example: `steelyard report resolved model evaluated --out report.html`
    """,
    (
        StageArgument("runs", "The --out folders of finished runs: resolve, train, evaluate …"),
        StageOption("out", "FILE.html, or a folder that gets report.html and run.json."),
        SettingOption("language"),
        SettingOption("title"),
    ),
    _report_lines,
    prepare=_check_page_name,
)


def _view(
    folder: Annotated[Path, typer.Argument(help="The folder whose runs are shown, at any depth.")] = Path(),
    *,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes a free one.")] = 8765,
    host: Annotated[str, typer.Option("--host", help="The address to serve on. Default: this machine only.")] = _HOST,
    is_opened: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = False,
) -> None:
    """Serve the runs of a folder as web pages that follow running stages: progress, time left, curves, cost.

    The list shows each run with its state and result; a click opens its report, and selected runs give one report, a
    comparison or a leaderboard. A run that was stopped is shown with the command that continues it. Nothing is changed.
    Ctrl-C ends it.

    Example: `steelyard view steelyard-demo`
    """
    from steelyard.viewing.server import is_loopback, serve

    if not is_loopback(host):
        log(f"{host}: everyone who reaches this machine can read these runs: there is no password")

    def announce(address: str) -> None:
        typer.echo(f"{folder.resolve()}: {address}")
        log("Ctrl-C ends it")
        if is_opened:
            import webbrowser

            webbrowser.open(address)

    try:
        serve(folder, host=host, port=port, announce=announce)
    except KeyboardInterrupt:
        log("stopped")


VERBS = (COMPARE, LANGUAGES, LEADERBOARD, REPORT, FunctionVerb("view", _view))
