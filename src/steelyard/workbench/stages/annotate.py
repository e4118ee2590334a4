"""The stage `annotate` of a recipe: cases into a project of the workbench, once, and then people's work until its end.

While people work the stage waits, and the same command goes on when they have finished. Simulated people work at once,
in a database of their own inside the stage's folder.
"""

import time
from pathlib import Path

from sqlalchemy.orm import Session

from steelyard.annotation.people_runs import AnnotateSummary
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.remedies import NAME, Advice, Command, Remedy
from steelyard.core.text import number_of
from steelyard.core.types import Counts, Run
from steelyard.io.cases import read_cases
from steelyard.io.lines import check_readable
from steelyard.io.run_folder import Result, run_stage
from steelyard.workbench.pipeline.projects import ENDED, count_states
from steelyard.workbench.pipeline.waiting import check_finished
from steelyard.workbench.simulated_projects import made_whole, start_project
from steelyard.workbench.simulation import work_until_finished
from steelyard.workbench.stages._project_file import (
    DATABASE_FILE,
    PROJECT_FILE,
    ProjectReference,
    address_of,
    find_project,
    read_reference,
    write_reference,
)
from steelyard.workbench.stages._recipe_project import Config, import_all, import_once
from steelyard.workbench.storage.database import open_workbench

_DAYS_AGO = 365
"""When simulated people began: a million answers take ten of them 46 days."""


_DEFAULT = Config()


def annotate(cases: Path, out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run[AnnotateSummary]:
    """Import cases into a project, unless they are in it, and finish when its people have finished.

    Writes ``project.json``, by which `annotated` finds the project, and with simulated people ``workbench.db``. Raises
    WaitingError while people work, ConfigError for a project of other cases or settings, EvidenceError for texts that
    differ from those that people answer to.
    """
    check_readable(cases)
    check_settings(config)

    def write(result: Result) -> None:
        if config.people == "simulated":
            states = _simulate(result, cases, config)
        else:
            states = _wait_for_people(result, cases, config)
        num_cases = sum(1 for _ in read_cases(cases))
        num_used = min(num_cases, sum(states.values()))
        left_out = {} if num_used == num_cases else {"without a task": num_cases - num_used}
        result.counts = Counts(num_in=num_cases, num_used=num_used, dropped=left_out)
        result.summary = AnnotateSummary(
            project=config.project,
            kind=config.tasks.kind,
            is_simulated=config.people == "simulated",
            num_cases=num_cases,
            states=dict(sorted(states.items())),
        )

    return run_stage(out, "annotate", Run[AnnotateSummary], write, config=config, inputs={"cases": cases}, force=force)


def check_settings(config: Config) -> None:
    """Raise ConfigError for a project without a name, and for an environment variable that is not set."""
    if not config.project.strip():
        raise ConfigError("the project has no name", where="project", do=Advice("name it: ", Remedy("project", NAME)))
    address_of(config.database, config.secret)


def _simulate(result: Result, cases: Path, config: Config) -> dict[str, int]:
    """Let simulated people do all of the work, in a database that has its name only when they have finished."""
    result.path(DATABASE_FILE)
    every = tuple(read_cases(cases))
    with made_whole(result.folder) as database:
        # The work takes days by its own clock: none of it may lie in the future, where nobody sees it.
        at = time.time() - _DAYS_AGO * 24 * 3600.0
        simulation = start_project(
            database, every, seed=config.seed, begun_at=at, rules=config.rules, tasks=config.tasks, name=config.project
        )

        def load(session: Session) -> ProjectReference:
            project = import_all(session, simulation.crew.project, every, batch="simulated", where=cases, at=at)
            return ProjectReference.of(project, database="", secret=None)

        reference = database.write(load)
        states = work_until_finished(simulation)
    if unfinished := sum(number for state, number in states.items() if state not in ENDED):
        raise EvidenceError(f"simulated people leave {number_of(unfinished, 'item')} unfinished", where=str(cases))
    write_reference(result.path(PROJECT_FILE), reference)
    return states


def _wait_for_people(result: Result, cases: Path, config: Config) -> dict[str, int]:
    """Import the cases if they are not in the project. Raises WaitingError until its people have finished."""
    file = result.path(PROJECT_FILE)
    # What an earlier run imported is there, by any name.
    reference = read_reference(file) if file.is_file() else None
    if reference is not None and reference.is_simulated:
        raise ConfigError("its people are simulated", where=str(file), do="name another folder for real people")
    database = open_workbench(address_of(config.database, config.secret), is_made=reference is None)
    try:
        at = time.time()
        imported = database.write(lambda session: import_once(session, cases, config, reference, at=at))
        # Before people are waited for: a second import would ask them the same again.
        write_reference(file, imported)
        with database.reading() as session:
            project = find_project(session, imported, where=database.shown_address)
            if config.secret is None:
                serving = Advice("serve it: ", Command("workbench serve", (), (Remedy("database", config.database),)))
            else:
                serving = Advice(f"serve the address in {config.secret}: ", Command("workbench serve"))
            check_finished(session, project, where=database.shown_address, serving=serving)
            return count_states(session, project.id)
    finally:
        database.close()
