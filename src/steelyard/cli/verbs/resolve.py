"""The verb `resolve` on the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from steelyard.ranking.conflicts import Conflicts, ConflictTables

_MOST_ROWS = 10


def command(
    cases: Annotated[Path, typer.Argument(help="The case file.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder for cases.jsonl and run.json.")],
    only: Annotated[
        list[str] | None, typer.Option(help="Use only judgments of kind=, judge= or batch=NAME; repeat. Default: all.")
    ] = None,
    aggregate: Annotated[
        str | None,
        typer.Option(
            help="majority: verdicts on a pair vote first; an even vote is a tie. "
            "dawid-skene: judges are weighed by how they agree. Default: each counts."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, as KEY=VALUE; repeat. An unknown KEY lists all.")
    ] = None,
    engine: Annotated[str, typer.Option(help="local, or ray: on a cluster (RAY_ADDRESS names one).")] = "local",
    workers: Annotated[
        int | None, typer.Option(help="How many processes. Default: one for each core, for large files.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole record of the run as JSON.")] = False,
) -> None:
    """Turn judgments into conflict-free rankings, and report the conflicts.

    Responses that beat one another in a circle share a tier; a tier is what no remaining response beats. The judgments
    stay as they are: only `ranking` is new. A case without judgments keeps the ranking it has.

    The table says what share of the judgments, and of the strict ones, the rankings do not keep; in how many prompts
    that happens; and what share of all response pairs is ordered. Judges and kinds are measured on their own graphs.

    Example: `steelyard resolve cases.jsonl --out resolved --only kind=human --only kind=llm --aggregate majority`
    """
    from steelyard.cli.shown import show
    from steelyard.core.config import parse_settings, resolve_config
    from steelyard.ranking.judgment_table import parse_only
    from steelyard.stages.resolve import Config, resolve

    settings = parse_settings(set_ or ())
    if only:
        settings["only"] = parse_only(only)
    if aggregate:
        settings["aggregate"] = aggregate
    run = resolve(
        cases, out, resolve_config(Config, settings, where="resolve"), workers=workers, engine=engine, force=force
    )
    has_judgments = run.summary.conflicts.overall.num_judgments > 0
    if not as_json and has_judgments:
        _print_table(run.summary.conflicts)
    show(run, _lines(run.counts.noted, out, has_judgments=has_judgments), as_json=as_json)


def _lines(noted: dict[str, int], out: Path, *, has_judgments: bool) -> Iterator[str]:
    """What became of the cases, where a table of conflicts does not say it."""
    if not has_judgments:
        yield "no judgment with a verdict counts here: there are no conflicts to measure, and no ranking was made"
    if noted["given"]:
        yield f"{noted['given']:,} cases have no judgment that counts, and keep the ranking that they came with"
    if split := noted.get("pairs tied by an even vote"):
        yield f"{split:,} pairs of responses have no verdict with the most votes: an even vote is a tie"
    yield f"rankings in {out / 'cases.jsonl'}"


def _print_table(conflicts: "ConflictTables") -> None:
    from steelyard.cli.tables import print_table

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
    print_table("Conflicts", ("ratio", "of strict", "prompts with", "ordered", "judgments", "prompts"), rows)


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
