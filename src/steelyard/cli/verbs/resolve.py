"""Turn judgments into conflict-free rankings, and report the conflicts.

Responses that beat one another in a circle share a tier; a tier is what no remaining response beats. The judgments
stay as they are: only `ranking` is new. A case without judgments keeps the ranking it has.

The table says what share of the judgments, and of the strict ones, the rankings do not keep; in how many prompts
that happens; and what share of all response pairs is ordered. Judges and kinds are measured on their own graphs.

Example: `steelyard resolve cases.jsonl --out resolved --only kind=human --only kind=llm --aggregate majority`
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.output import TerminalTable
from steelyard.cli.stage_verb import CASES, ONLY, SettingOption, StageOption, StageVerb
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.ranking.conflicts import Conflicts, ConflictTables
    from steelyard.stages.resolve import ResolveSummary

_MOST_ROWS = 10
_HEADS = ("ratio", "of strict", "prompts with", "ordered", "judgments", "prompts")


def lines(run: "Run[ResolveSummary]", out: Path) -> Iterator[str | TerminalTable]:
    """Yield the table of conflicts, and what became of cases that it does not count."""
    conflicts, noted = run.summary.conflicts, run.counts.noted
    if conflicts.overall.num_judgments:
        yield _table(conflicts)
    else:
        yield "no judgment with a verdict counts here: there are no conflicts to measure, and no ranking was made"
    if noted["given"]:
        yield f"{noted['given']:,} cases have no judgment that counts, and keep the ranking that they came with"
    if ties := noted.get("pairs tied by an even vote"):
        yield f"{ties:,} pairs of responses have no verdict with the most votes: an even vote is a tie"
    yield f"rankings in {out / 'cases.jsonl'}"


def _table(conflicts: "ConflictTables") -> TerminalTable:
    rows: list[tuple[str, ...]] = [("all", *_row(conflicts.overall))]
    for group in ("kind", "judge", "category", "subset", "language"):
        members: dict[str, Conflicts] = getattr(conflicts, f"by_{group}")
        if not members:
            continue
        largest = sorted(members, key=lambda name: -members[name].num_judgments)[:_MOST_ROWS]
        rows.append((f"by {group}",))
        rows += [(f"  {name}", *_row(members[name])) for name in largest]
        if len(members) > len(largest):
            rows.append((f"  … {len(members) - len(largest)} more",))
    return TerminalTable("Conflicts", _HEADS, rows)


def _row(conflicts: "Conflicts") -> tuple[str, ...]:
    shares = (
        conflicts.ratio,
        conflicts.ratio_of_strict,
        conflicts.share_of_prompts,
        conflicts.share_of_pairs_ordered,
    )
    return (
        *("-" if share is None else f"{share:.1%}" for share in shares),
        f"{conflicts.num_judgments:,}",
        f"{conflicts.num_prompts:,}",
    )


command = StageVerb(
    "resolve",
    (
        CASES,
        StageOption("out", "The folder for cases.jsonl and run.json."),
        ONLY,
        SettingOption("aggregate"),
        StageOption("engine", "local, or ray: on a cluster (RAY_ADDRESS names one)."),
        StageOption("workers", "The number of processes. Default: one for each core, for large files."),
    ),
    lines,
)
