"""Workbenches that simulated people fill: the demonstration in the middle of a project, and a rehearsal to its end.

Every item, answer and decision is simulated, and every page says so. Accounts of each role wait for a visitor.
"""

import itertools
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy.orm import Session

from steelyard.annotation.pipeline import LAYERS, Layer, PipelineRules
from steelyard.annotation.task_kinds import TaskRules
from steelyard.core.errors import OutputError
from steelyard.core.types import Case
from steelyard.io.cases import read_cases, write_cases
from steelyard.stages.simulate import Config as Material
from steelyard.stages.simulate import simulate
from steelyard.workbench.demo_kinds import add_kinds
from steelyard.workbench.pipeline.alignment import all_items_to_align
from steelyard.workbench.pipeline.case_export import Evidence, export_cases
from steelyard.workbench.simulated_people import Simulation
from steelyard.workbench.simulated_projects import (
    NUM_QUALIFICATION,
    import_batch,
    made_whole,
    start_project,
)
from steelyard.workbench.simulation import adjudicate_items, adjudicate_layers, annotate, review, work_until_finished
from steelyard.workbench.storage.database import DATABASE_FILE, Database
from steelyard.workbench.storage.tables import StoredPerson, StoredProject
from steelyard.workbench.views.guidelines import NewGuideline, add_guideline

_NUM_PROMPTS = 60
_DAYS = 8
_PACE = 400.0
"""Some minutes of work of each person stand for the days of a project, which end before the visitor comes."""
_REVIEW_GOLD_SHARE = 0.4
"""A few dozen reviews show little of their reviewers with the usual share."""
_ORDERING_KINDS = ("ranking", "pairwise", "baseline")
"""The kinds of tasks to which a ranking of the responses is a reference: the others have no qualification here."""
_ROUNDS_TO_ALIGN = 3
"""In the first people propose, in the second the others take it or give up, in the third both have."""


def open_demo(folder: Path, seed: int) -> Database:
    """Return the workbench of a folder with a populated project, which is made if the folder has none.

    There are accounts ``annotator``, ``delivery``, ``operations``, ``researcher`` and ``administrator`` with the
    password `simulated_projects.PASSWORD`. Raises OutputError where the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / DATABASE_FILE).exists():
        with made_whole(folder) as made:
            populate(made, demo_cases(folder / "cases", seed=seed), seed=seed)
    database = Database(f"sqlite:///{folder / DATABASE_FILE}")
    database.migrate()
    return database


def demo_cases(folder: Path, *, seed: int, num_prompts: int = _NUM_PROMPTS) -> tuple[Case, ...]:
    """Return prompts of the built-in corpus with five responses, each with its latent quality in ``meta``."""
    simulate(folder, Material(num_prompts=num_prompts, seed=seed))
    return tuple(read_cases(folder / "gold.jsonl"))


def populate(database: Database, cases: Sequence[Case], *, seed: int) -> Simulation:
    """Fill an empty workbench with six batches: one is finished, the others wait at one step of the pipeline each.

    The people who give an answer stop before the visitor's account of each role: every queue has something in it.
    Every other kind of tasks has a small project of its own.
    """
    begun_at = time.time() - _DAYS * 24 * 3600
    num_examples = min(NUM_QUALIFICATION, len(cases) // 10)
    examples, cases = cases[:num_examples], cases[num_examples:]
    rules = PipelineRules(review_gold_share=_REVIEW_GOLD_SHARE)
    simulation = start_project(database, cases, seed=seed, begun_at=begun_at, rules=rules, qualification=examples)
    simulation = simulation._replace(pace=_PACE)
    add_guidelines(simulation)
    size = len(cases) // 7
    ends = [len(cases) - number * size for number in range(5, -1, -1)]
    parts = [cases[begin:end] for begin, end in itertools.pairwise([0, *ends])]
    import_batch(simulation, parts[0], "batch 1")
    work_until_finished(simulation)
    for number, part in enumerate(parts[1:4]):
        import_batch(simulation, part, f"batch {number + 2}")
        annotate(simulation)
        for _ in range(_ROUNDS_TO_ALIGN):
            adjudicate_items(simulation)
        # The layers before the one that this batch waits for.
        for layer in LAYERS[: len(LAYERS) - 1 - number]:
            alone = _with_layers(simulation, (layer,))
            adjudicate_layers(alone)
            review(alone)
    import_batch(simulation, parts[4], "batch 5")
    annotate(simulation)
    replace_visitor(simulation)
    import_batch(simulation, parts[5], "batch 6")
    # Half of the answers: five tasks a case, two people a task.
    annotate(simulation, most=5 * len(parts[5]))
    add_kinds(simulation, cases)
    return simulation


def _with_layers(simulation: Simulation, layers: Sequence[Layer]) -> Simulation:
    """Return the simulation in which nobody but these layers reviews."""
    reviewers = {layer: people if layer in layers else () for layer, people in simulation.crew.layers.items()}
    return simulation._replace(crew=simulation.crew._replace(layers=reviewers))


def add_guidelines(simulation: Simulation) -> None:
    """Add the guidelines of the demonstration, in both languages of the pages."""
    path = Path(__file__).with_name("demo_guidelines.toml")
    texts = [NewGuideline(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["guidelines"]]

    def add(session: Session) -> None:
        project = session.get_one(StoredProject, simulation.crew.project)
        for text in texts:
            add_guideline(session, project, text, by=None, at=simulation.begun_at)

    simulation.database.write(add)


def replace_visitor(simulation: Simulation) -> None:
    """Give the visitor's login to the annotator who has the most items to align, for whom the demonstration shows most.

    The others of the crew align what does not need that person.
    """

    def swap(session: Session) -> int:
        waiting = {person: len(all_items_to_align(session, person)) for person in simulation.crew.annotators}
        chosen_person = max(simulation.crew.annotators, key=lambda person: waiting[person])
        visitor, chosen = (
            session.get_one(StoredPerson, number) for number in (simulation.crew.annotators[0], chosen_person)
        )
        names, passwords = (visitor.name, chosen.name), (visitor.password_hash, chosen.password_hash)
        visitor.name = f"{visitor.name} (moving)"
        session.flush()
        chosen.name, chosen.password_hash = names[0], passwords[0]
        session.flush()
        visitor.name, visitor.password_hash = names[1], passwords[1]
        return chosen_person

    chosen_person = simulation.database.write(swap)
    others = tuple(person for person in simulation.crew.annotators if person != chosen_person)
    adjudicate_items(simulation._replace(crew=simulation.crew._replace(annotators=others[::2])))


def simulate_to_bench(
    cases: Path,
    out: Path,
    *,
    seed: int = 0,
    evidence: Evidence = "aligned",
    rules: PipelineRules | None = None,
    tasks: TaskRules | None = None,
) -> dict[str, int]:
    """Take a case file through the whole pipeline with simulated people, from the first task to the last validation.

    Writes the workbench ``workbench.db`` and the finished cases ``bench.jsonl`` into the folder ``out``, and returns
    the number of items by state. The bench is a case file for `resolve`; its judgments are evidence of nothing. Raises
    OutputError for a folder that has a workbench, and EvidenceError for cases that the rules of the tasks refuse.
    """
    every = tuple(read_cases(cases))
    if (out / DATABASE_FILE).exists():
        raise OutputError("exists already", where=str(out / DATABASE_FILE), do="name a folder without a workbench")
    out.mkdir(parents=True, exist_ok=True)
    with made_whole(out) as database:
        kind = (tasks or TaskRules()).kind
        examples: tuple[Case, ...] = ()
        if kind in _ORDERING_KINDS:
            with TemporaryDirectory() as folder:
                examples = demo_cases(Path(folder), seed=seed + 1, num_prompts=NUM_QUALIFICATION)
        simulation = start_project(
            database, every, seed=seed, begun_at=time.time(), rules=rules, tasks=tasks, qualification=examples
        )
        import_batch(simulation, every, "simulated", has_reference=kind == "native_check")
        states = work_until_finished(simulation)
        with database.reading() as session:
            project = session.get_one(StoredProject, simulation.crew.project)
            write_cases(out / "bench.jsonl", export_cases(session, project, evidence=evidence))
    return states
