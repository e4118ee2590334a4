"""`steelyard workbench queue`: order the open items of a running project by models and judges, or show the order."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from steelyard.cli.output import TerminalTable, echo_record, print_lines
from steelyard.cli.verbs.workbench_data import (
    DEFAULT_DATABASE,
    DatabaseAddress,
    ProjectName,
    QueueJudged,
    QueueScores,
    RandomShare,
    existing_project,
    listed_members,
    open_workbench,
)
from steelyard.core.errors import ConfigError
from steelyard.core.text import number_of

if TYPE_CHECKING:
    from steelyard.workbench.pipeline.task_ordering import QueueItem, QueuePlan

_NUM_EXAMPLES = 10


def order_items(
    *,
    project: ProjectName,
    scores: QueueScores = None,
    judged: QueueJudged = None,
    random_share: RandomShare = 0.2,
    is_dry: Annotated[
        bool, typer.Option("--dry-run", help="Show the order and ten examples, and store nothing.")
    ] = False,
    database: DatabaseAddress = DEFAULT_DATABASE,
    as_json: Annotated[bool, typer.Option("--json", help="Print the order as JSON.")] = False,
) -> None:
    """Order the items that nobody has begun: first those on which models and judges are unsure or disagree.

    The priority of an item is the entropy of the mean probability of its sources, in bits, over the pairs that its
    tasks compare. A share of the items comes by chance, evenly spread: they are a random sample whatever is finished.
    Items that people have begun come before all others. The order and its sources are in the audit log and in every
    exported case.

    Example: `steelyard workbench queue --project bench --scores scored/scores.jsonl --judged judged.jsonl --dry-run`
    """
    from steelyard.workbench.pipeline.queue_sources import read_committee
    from steelyard.workbench.pipeline.task_ordering import cases_of, check_share, plan_queue, store_queue

    if not scores and not judged:
        raise ConfigError("nothing to order by", where="--scores, --judged", do="name a file: --scores scores.jsonl")
    check_share(random_share)
    opened = open_workbench(database)
    with opened.reading() as session:
        cases = cases_of(session, existing_project(session, project))
    committee = read_committee(scores or (), judged or (), cases, is_complete=False)
    with opened.reading() as session:
        plan = plan_queue(session, existing_project(session, project), committee, random_share=random_share)
    number = 0
    if not is_dry:
        number = opened.write(
            lambda session: store_queue(session, existing_project(session, project), plan, by=None, at=time.time())
        )
    if as_json:
        echo_record(msgspec.to_builtins(plan) | {"num_ordered": number})
        return
    begun = f"; {number_of(plan.num_begun, 'begun item')} before them" if plan.num_begun else ""
    would = f"would order {number_of(len(plan.items), 'item')}" if is_dry else f"ordered {number_of(number, 'item')}"
    print_lines([f"{project}: {would} by {listed_members(plan)}{begun}.", *plan_lines(plan)])


def plan_lines(plan: "QueuePlan") -> Iterator[str | TerminalTable]:
    """Yield the sources of a queue, the distribution of its priorities, and its first items."""
    for source in plan.sources:
        scale = f"fitted on {number_of(source.num_labels, 'labelled pair')}" if source.num_labels else "no labels"
        yield f"  {source.name}: {number_of(source.num_pairs, 'pair')}, {scale}"
    unknown = f"; {number_of(plan.num_unknown, 'item')} that no source knows come last" if plan.num_unknown else ""
    yield f"  {number_of(plan.num_random, 'item')} by chance ({plan.random_share:.0%}){unknown}"
    rows = [
        [str(each.decile), str(each.num_items), *(f"{bits:.3f}" for bits in (each.lowest, each.mean, each.highest))]
        for each in plan.deciles
    ]
    yield TerminalTable("priority in bits by decile", ["items", "lowest", "mean", "highest"], rows)
    heads = ["prompt", "language", "priority", "uncertainty", "disagreement", "by chance"]
    yield TerminalTable("first items", heads, [_row(item) for item in plan.items[:_NUM_EXAMPLES]])


def _row(item: "QueueItem") -> list[str]:
    bits = ("" if each is None else f"{each:.3f}" for each in (item.priority, item.uncertainty, item.disagreement))
    return [str(item.place), item.prompt, item.language, *bits, "yes" if item.is_random else ""]
