"""The verb `describe`: what it prints of a data set, and its options."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.options import SettingOption, StageArgument, StageOption
from steelyard.cli.output import TerminalTable, next_line
from steelyard.cli.verb import StageVerb
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.prompts.description import DescribeSummary, GroupStatistics

_MOST_GROUPS = 5
"""The largest number of groups of one grouping that are shown without --verbose."""


def _describe_lines(run: "Run[DescribeSummary]", out: Path) -> Iterator[str | TerminalTable]:
    overall = run.summary.overall
    prompts, responses = number_of(overall.num_prompts, "prompt"), number_of(overall.num_responses, "response")
    mean = "" if overall.num_prompts == 1 else f" ({overall.responses_per_prompt:.2f} a prompt)"
    comparisons = number_of(overall.num_comparisons, "comparison")
    have = verb_for(overall.num_prompts, "has", "have")
    yield f"{prompts} {have} {responses}{mean} and {comparisons} without ties."
    yield from _mean_lengths(overall)
    yield from _group_sizes(run.summary)
    if number := run.summary.num_unranked:
        have = verb_for(number, "has", "have")
        yield f"{number_of(number, 'prompt')} {have} judgments and no ranking: `steelyard resolve` makes comparisons"
    if out == Path():
        yield "the lengths of each group: --verbose"
    else:
        yield f"{out / 'table.md'} and {out / 'table.tex'} have the lengths of each group"
        yield next_line("report", out, "--out", "report.html", effect="shows them")


def _mean_lengths(overall: "GroupStatistics") -> Iterator[str]:
    """Yield a line for each unit of length: ``  characters: prompt 114.82, chosen 410.50``."""
    for unit in ("characters", "tokens"):
        if (lengths := getattr(overall, unit)) is not None:
            means = {part: getattr(lengths, part) for part in lengths.__struct_fields__}
            known = ", ".join(f"{part} {mean:,.2f}" for part, mean in means.items() if mean is not None)
            yield f"  mean {unit}: {known}"


def _group_sizes(summary: "DescribeSummary") -> Iterator[str]:
    """Yield a line for each grouping: the prompts of its largest groups."""
    from steelyard.prompts.description import GROUPINGS

    for name in GROUPINGS:
        groups: dict[str, GroupStatistics] = getattr(summary, f"by_{name}")
        largest = [f"{group} {each.num_prompts:,}" for group, each in list(groups.items())[:_MOST_GROUPS]]
        others = len(groups) - len(largest)
        if groups:
            yield f"  prompts by {name}: {', '.join(largest)}" + (f"; {others:,} smaller ones" if others else "")


def _describe_details(run: "Run[DescribeSummary]", out: Path) -> Iterator[str | TerminalTable]:
    from steelyard.report.data_statistics import statistics_table

    shown = statistics_table(run.summary)
    heads = [column.replace(" of ", "\n").replace(" per ", "\nper ") for column in shown.columns]
    rows: list[tuple[str, ...]] = []
    for name, lines in shown.groupings.items():
        rows += [(f"by {name}",)] if name else []
        rows += lines
    yield TerminalTable("", heads, rows)


DESCRIBE = StageVerb(
    "describe",
    """Describe a data set: prompts, responses, comparisons, and mean lengths, by category, language, source and author.

    These are the numbers of Table 1 of CHEEMS. Comparisons are ordered pairs, so ties are none; the mean lengths of
    chosen and rejected responses are over comparisons. Characters are Unicode code points. With `--out` the folder has
    the table as Markdown and LaTeX, and the report of the run shows it. Nothing is changed.

    Example: `steelyard describe resolved/cases.jsonl`

    Example: `steelyard describe resolved/cases.jsonl --tokenizer model --out described`
    """,
    (
        StageArgument("cases", "Case files, folders or quoted patterns.", metavar="CASES"),
        StageOption("out", "The folder for table.md, table.tex and run.json. Default: the terminal alone."),
        SettingOption("tokenizer"),
        SettingOption("pairs"),
    ),
    _describe_lines,
    details=_describe_details,
)
