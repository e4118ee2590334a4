"""Merged files: the cases that were read and joined, and the evidence that differs between files."""

from collections.abc import Sequence

from steelyard.curation.joining import MergeSummary
from steelyard.evaluation.tables import Grouped, Panel, Sentence, count, table, word
from steelyard.report.page import Section
from steelyard.report.run_records import rule_word
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection


def _contents(runs: Sequence[StageRun[MergeSummary]], sources: PageSources) -> StageContents:
    panels: list[Panel] = []
    for run in runs:
        noted = run.source.run.counts.noted
        if noted:
            rows = [(rule_word(rule), count(number)) for rule, number in sorted(noted.items())]
            title = run.name if len(runs) > 1 else word("merge_counts")
            panels.append(Panel(title, None, (Grouped("", table(("setting", "n"), rows)),)))
    sentences = tuple(_sentence(run) for run in runs)
    return StageContents((Section("merged", tuple(run.evidence for run in runs), tuple(panels), sentences),))


def _sentence(run: StageRun[MergeSummary]) -> Sentence:
    counts = run.source.run.counts
    files = sum(role.startswith("cases.") for role in run.source.run.inputs)
    values = {
        "run": run.name,
        "read": count(counts.num_in),
        "files": count(files),
        "cases": count(run.summary.num_cases),
        "joined": count(counts.num_in - run.summary.num_cases),
    }
    return Sentence("say_merged", values)


SECTION = StageSection(130, "merge", MergeSummary, _contents)
