"""The answers of people that stand: cases, judgments, and the prompts that people refuse."""

from collections.abc import Iterator

from steelyard.annotation.people_runs import AnnotatedSummary
from steelyard.evaluation.tables import Grouped, Panel, Sentence, count, table, word
from steelyard.report.run_records import rule_word
from steelyard.views.view import PageSources, StageRun, View, report_step


def _sentences(run: StageRun[AnnotatedSummary]) -> Iterator[Sentence]:
    summary = run.summary
    values = {
        "run": run.name,
        "project": summary.project,
        "kind": word(f"kind_of_task_{summary.kind}", summary.kind),
        "cases": count(summary.num_cases),
        "judgments": count(summary.num_judgments),
        "ratings": count(summary.num_ratings),
        "number": count(summary.num_people),
        "people": word("people_who_are_simulated" if summary.is_simulated else "people_of_workbench"),
    }
    yield Sentence("say_people_answers", values)
    if summary.is_simulated:
        yield Sentence("say_people_simulated", {"project": summary.project})
    if summary.evidence == "both":
        yield Sentence("say_people_both", {"run": run.name})
    if summary.num_prompts_left is not None:
        yield Sentence("say_prompts_left", {"run": run.name, "left": count(summary.num_prompts_left)})


def _panels(run: StageRun[AnnotatedSummary], sources: PageSources) -> Iterator[Panel]:
    summary = run.summary
    numbers = {
        "answers_cases": summary.num_cases,
        "answers_judgments": summary.num_judgments,
        "answers_ratings": summary.num_ratings,
        "answers_people": summary.num_people,
    }
    answers = [(word(name), count(number)) for name, number in numbers.items()]
    yield Panel(word("answers_of_people"), None, (Grouped("", table(("setting", "n"), answers)),))
    if refused := summary.refused:
        rows = [(rule_word(reason), count(number)) for reason, number in refused.items()]
        yield Panel(word("refused_by_people"), None, (Grouped("", table(("rule", "n"), rows)),), "note_refused")


VIEW = View(
    28,
    "annotated",
    AnnotatedSummary,
    "annotated",
    _sentences,
    _panels,
    records=lambda summary: [{"reason": reason, "num_prompts": n} for reason, n in summary.refused.items()],
    next_step=report_step("shows what people answered"),
)
