"""Projects of simulated people: a workbench for them, their accounts and qualification, and batches of cases."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import msgspec
from sqlalchemy.orm import Session

from steelyard.annotation.pipeline import LAYERS, Layer, PipelineRules
from steelyard.annotation.qualification import QualificationRules
from steelyard.annotation.task_kinds import TaskRules
from steelyard.core.types import Case
from steelyard.workbench.accounts.people import NewPerson, add_person, make_key
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.pipeline.review_placement import ROLE_OF
from steelyard.workbench.qualification.material import import_qualification
from steelyard.workbench.simulated_people import Crew, Habits, Simulation, latent_qualities
from steelyard.workbench.storage.database import DATABASE_FILE, Database
from steelyard.workbench.storage.tables import Role, StoredProject

PASSWORD = "simulated people"
NUM_ANNOTATORS = 29
"""As many as annotated CheemsBench."""
NUM_QUALIFICATION = 5
_REASON = "Simulated: this order is that of the qualities that were drawn for the responses."


@contextmanager
def made_whole(folder: Path) -> Iterator[Database]:
    """Give a new workbench that has its name in the folder only when the block ends without an error."""
    unfinished = folder / f"{DATABASE_FILE}.unfinished"
    # What a run that was killed left.
    _remove(unfinished)
    database = Database(f"sqlite:///{unfinished}")
    try:
        database.migrate()
        yield database
    except BaseException:
        database.close()
        _remove(unfinished)
        raise
    # The last connection that is closed writes the log of changes into the file.
    database.close()
    unfinished.replace(folder / DATABASE_FILE)


def _remove(database: Path) -> None:
    """Remove the file of a database, with its logs."""
    for file in database.parent.glob(f"{database.name}*"):
        file.unlink()


def start_project(
    database: Database,
    cases: Iterable[Case],
    *,
    seed: int,
    begun_at: float,
    num_annotators: int = NUM_ANNOTATORS,
    rules: PipelineRules | None = None,
    tasks: TaskRules | None = None,
    habits: Habits | None = None,
    qualification: Sequence[Case] = (),
    name: str = "Simulated project",
) -> Simulation:
    """Make a project of simulated people: annotators, two in each layer, and an administrator. Nothing is imported.

    With cases for a qualification, its annotators pass `NUM_QUALIFICATION` tasks of these first; their rankings are
    the reference.
    """
    every = (*cases, *qualification)
    qualifying = QualificationRules(num_tasks=NUM_QUALIFICATION if qualification else 0, least_accuracy=0.7)

    def make(session: Session) -> Crew:
        make_key(session)
        settings = ProjectSettings(
            rules=rules or PipelineRules(), tasks=tasks or TaskRules(), qualification=qualifying, seed=seed
        )
        project = add_project(session, name, settings, by=None, at=begun_at, is_simulated=True)

        def add(role: Role, number: int) -> int:
            # The first of each role is the visitor's; the others cannot log in.
            new = NewPerson(
                name=role if number == 0 else f"{role} {number + 1}",
                role=role,
                password=PASSWORD if number == 0 else None,
                display_name=f"Simulated {role} {number + 1}",
                is_simulated=True,
            )
            return add_person(session, new, by=None, at=begun_at).id

        annotators = tuple(add("annotator", number) for number in range(num_annotators))
        layers: dict[Layer, tuple[int, ...]] = {
            layer: tuple(add(cast(Role, ROLE_OF[layer]), number) for number in range(2)) for layer in LAYERS
        }
        add("administrator", 0)
        if qualification:
            bare = [
                msgspec.structs.replace(_without_answers(case, has_reference=True), meta={"reason": _REASON})
                for case in qualification
            ]
            import_qualification(session, project, bare, by=None, at=begun_at)
        return Crew(project.id, annotators, layers)

    return Simulation(
        database=database,
        crew=database.write(make),
        qualities=latent_qualities(every, tasks or TaskRules(), seed=seed),
        habits=habits or Habits(),
        seed=seed,
        begun_at=begun_at,
    )


def import_batch(simulation: Simulation, cases: Iterable[Case], batch: str, *, has_reference: bool = False) -> None:
    """Import cases as one batch, without judgments and anything that tells how a response was made.

    Rankings stay where ``has_reference`` says that the tasks are compared with them.
    """
    bare = [_without_answers(case, has_reference=has_reference) for case in cases]

    def load(session: Session) -> None:
        project = session.get_one(StoredProject, simulation.crew.project)
        import_cases(session, project, bare, batch=batch, by=None, at=simulation.begun_at)

    simulation.database.write(load)


def _without_answers(case: Case, *, has_reference: bool) -> Case:
    responses = tuple(msgspec.structs.replace(response, author=None, meta=None) for response in case.responses)
    bare = msgspec.structs.replace(case, responses=responses, judgments=(), ratings=())
    return bare if has_reference else msgspec.structs.replace(bare, ranking=None, pairs=None)
