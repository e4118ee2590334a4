"""Simulations: the prompts and responses of each part, and the simulated judgments."""

from collections.abc import Sequence

from steelyard.annotation.simulated_annotators import SimulationSummary
from steelyard.evaluation.tables import Grouped, Panel, Sentence, Table, count, word
from steelyard.report.judgment_sections import kind_word
from steelyard.report.page import COMMA, Section
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection


def _contents(runs: Sequence[StageRun[SimulationSummary]], sources: PageSources) -> StageContents:
    panels = tuple(
        Panel(run.name if len(runs) > 1 else word("simulated_parts"), None, _tables(run.summary), "note_simulated")
        for run in runs
    )
    sentences = tuple(_sentence(run) for run in runs)
    return StageContents((Section("simulation", tuple(run.evidence for run in runs), panels, sentences),))


def _sentence(run: StageRun[SimulationSummary]) -> Sentence:
    summary = run.summary
    judgments = COMMA.join(f"{kind_word(kind)} {count(number)}" for kind, number in summary.num_judgments.items())
    prompts = count(sum(summary.num_prompts.values()))
    return Sentence("say_simulated", {"run": run.name, "prompts": prompts, "judgments": judgments})


def _tables(summary: SimulationSummary) -> tuple[Grouped, ...]:
    """Return the prompts of each part, and its responses by kind."""
    parts = list(summary.num_prompts)
    kinds = sorted({kind for numbers in summary.num_responses.values() for kind in numbers})
    rows = [
        (word(f"answer_{kind}", kind), *(count(summary.num_responses.get(part, {}).get(kind, 0)) for part in parts))
        for kind in kinds
    ]
    prompts = (word("prompts"), *(count(number) for number in summary.num_prompts.values()))
    titles = tuple(word(f"rule_{part}", part) for part in parts)
    return (Grouped("", Table((word("responses"), *titles), (prompts, *rows))),)


SECTION = StageSection(170, "simulate", SimulationSummary, _contents)
