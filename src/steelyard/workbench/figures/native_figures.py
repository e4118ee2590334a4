"""Results of native speakers on a project's items, by language: the figures of `export --what native` as a page."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from steelyard.annotation.native_results import NativeResult, native_results
from steelyard.core.types import Record
from steelyard.workbench.pipeline.case_export import export_cases
from steelyard.workbench.pipeline.planted_reviews import ShownTable, states_shown
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.storage.tables import StoredProject


class NativeFigures(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Results by language over the finished items; ``items`` are all of the project. ``judges``: names in all results.

    Each language has at most ``num_per_language`` items, so that reading them all takes little time.
    """

    items: int
    finished: int
    judges: tuple[str, ...]
    languages: tuple[NativeResult, ...]


def is_native_check(project: StoredProject) -> bool:
    """Tell whether the tasks of a project are those of the native-speaker check."""
    return settings_of(project).tasks.kind == "native_check"


def native_figures(session: Session, project: StoredProject, planted: ShownTable | None) -> NativeFigures:
    """Return the results of a native-speaker check by language; ``planted``: those that the reader sees."""
    states = states_shown(session, project.id, planted)
    unfinished = None if planted is None else select(planted.columns.item_id).where(planted.columns.state != "finished")
    results = native_results(export_cases(session, project, evidence="aligned", left_out=unfinished))
    return NativeFigures(
        items=sum(states.values()),
        finished=states.get("finished", 0),
        judges=tuple(sorted({judge for each in results for judge in each.judges})),
        languages=results,
    )
