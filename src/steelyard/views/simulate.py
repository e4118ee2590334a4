"""Simulations: the prompts and responses of each part, and the simulated judgments."""

from collections.abc import Iterator

from steelyard.annotation.simulated_annotators import SimulationSummary
from steelyard.evaluation.tables import Grouped, Panel, Sentence, Table, count, word
from steelyard.report.judgment_sections import kind_word
from steelyard.report.page import COMMA
from steelyard.views.view import PageSources, StageRun, View


def _sentences(run: StageRun[SimulationSummary]) -> Iterator[Sentence]:
    summary = run.summary
    judgments = COMMA.join(f"{kind_word(kind)} {count(number)}" for kind, number in summary.num_judgments.items())
    prompts = count(sum(summary.num_prompts.values()))
    yield Sentence("say_simulated", {"run": run.name, "prompts": prompts, "judgments": judgments})


def _panels(run: StageRun[SimulationSummary], sources: PageSources) -> Iterator[Panel]:
    """Yield the prompts of each part, and its responses by kind."""
    summary = run.summary
    parts = list(summary.num_prompts)
    kinds = sorted({kind for numbers in summary.num_responses.values() for kind in numbers})
    rows = [
        (word(f"answer_{kind}", kind), *(count(summary.num_responses.get(part, {}).get(kind, 0)) for part in parts))
        for kind in kinds
    ]
    prompts = (word("prompts"), *(count(number) for number in summary.num_prompts.values()))
    titles = tuple(word(f"rule_{part}", part) for part in parts)
    tables = (Grouped("", Table((word("responses"), *titles), (prompts, *rows))),)
    yield Panel(word("simulated_parts"), None, tables, "note_simulated")


VIEW = View(170, "simulate", SimulationSummary, "simulation", _sentences, _panels)
