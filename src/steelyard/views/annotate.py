"""People at work: the cases that became items of a project, and how each of them ended."""

from collections.abc import Iterator

from steelyard.annotation.people_runs import AnnotateSummary
from steelyard.evaluation.tables import Grouped, Panel, Sentence, count, table, word
from steelyard.report.page import COMMA
from steelyard.views.view import PageSources, StageRun, View


def _sentences(run: StageRun[AnnotateSummary]) -> Iterator[Sentence]:
    summary = run.summary
    states = COMMA.join(f"{word(f'state_{state}', state)} {count(n)}" for state, n in summary.states.items())
    values = {
        "run": run.name,
        "people": word("people_who_are_simulated" if summary.is_simulated else "people_of_workbench"),
        "project": summary.project,
        "kind": word(f"kind_of_task_{summary.kind}", summary.kind),
        "items": count(sum(summary.states.values())),
        "cases": count(summary.num_cases),
        "states": states,
    }
    yield Sentence("say_people_finished", values)
    if summary.is_simulated:
        yield Sentence("say_people_simulated", {"project": summary.project})


def _panels(run: StageRun[AnnotateSummary], sources: PageSources) -> Iterator[Panel]:
    rows = [(word(f"state_{state}", state), count(number)) for state, number in run.summary.states.items()]
    yield Panel(word("items_by_state"), None, (Grouped("", table(("state", "n"), rows)),))


VIEW = View(
    27,
    "annotate",
    AnnotateSummary,
    "annotate",
    _sentences,
    _panels,
    records=lambda summary: [{"state": state, "num_items": number} for state, number in summary.states.items()],
)
