"""Merged files: the cases that were read and joined, and the evidence that differs between files."""

from collections.abc import Iterator

from steelyard.curation.merge import MergeSummary
from steelyard.evaluation.tables import Grouped, Panel, Sentence, count, table, word
from steelyard.report.run_records import rule_word
from steelyard.views.view import PageSources, StageRun, View


def _sentences(run: StageRun[MergeSummary]) -> Iterator[Sentence]:
    counts = run.source.run.counts
    files = sum(role.startswith("cases.") for role in run.source.run.inputs)
    values = {
        "run": run.name,
        "read": count(counts.num_in),
        "files": count(files),
        "cases": count(run.summary.num_cases),
        "joined": count(counts.num_in - run.summary.num_cases),
    }
    yield Sentence("say_merged", values)


def _panels(run: StageRun[MergeSummary], sources: PageSources) -> Iterator[Panel]:
    counts = run.source.run.counts
    rows = [(word("merge_read"), count(counts.num_in)), (word("merge_cases"), count(run.summary.num_cases))]
    rows += [(rule_word(rule), count(number)) for rule, number in sorted(counts.noted.items())]
    yield Panel(word("merge_counts"), None, (Grouped("", table(("setting", "n"), rows)),))


VIEW = View(130, "merge", MergeSummary, "merged", _sentences, _panels)
