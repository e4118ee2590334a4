"""The stage `annotate` of a recipe: cases into a project of the workbench, once, and then people's work until its end.

The cases are recognised by their content: the same command imports nothing a second time, also after kills between.
While people work the stage waits, and the same command goes on when they have finished. Simulated people work at once,
in a database of their own inside the stage's folder.
"""

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.annotation.people_runs import AnnotateSummary
from steelyard.annotation.pipeline import PipelineRules
from steelyard.annotation.task_kinds import TaskRules
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError, WaitingError
from steelyard.core.names import normalize_name
from steelyard.core.remedies import NAME, Advice, Command, Remedy, joined
from steelyard.core.text import number_of
from steelyard.core.types import Case, Counts, Run
from steelyard.io.cases import encode_case, read_cases
from steelyard.io.hashing import file_hash
from steelyard.io.lines import check_readable
from steelyard.io.run_folder import Result, run_stage
from steelyard.workbench.pipeline.case_import import import_cases, importable_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project, count_states, settings_of
from steelyard.workbench.pipeline.waiting import waiting_lines
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
from steelyard.workbench.storage.account_names import lock_names
from steelyard.workbench.storage.database import Database, open_workbench
from steelyard.workbench.storage.tables import StoredItem, StoredProject, StoredTask

_BLOCK = 500
_ENDED = {"finished", "dropped"}
_NAMED_IN_ERROR = 3
_DAYS_AGO = 365
"""When simulated people began: a million answers take ten of them 46 days."""


class Config(BaseConfig, frozen=True):
    """Settings of the work of people in a recipe. Other settings of a project are on its page."""

    project: str = ""
    """The name of the project; it is made if there is none."""
    people: Literal["workbench", "simulated"] = "workbench"
    """People at the workbench, or simulated ones: they try a recipe, and their answers are evidence of nothing."""
    database: str = f"sqlite:///{DATABASE_FILE}"
    """The address of the workbench: sqlite:///FILE, or postgresql://USER@HOST/NAME without a password."""
    secret: str | None = None
    """The environment variable that has the address, where it has a password; it takes the place of database."""
    add: bool = False
    """Add cases that the project lacks to it, and keep its others. Default: it has exactly these."""
    tasks: TaskRules = TaskRules()
    """Which tasks a case gets; tasks.kind is their kind."""
    rules: PipelineRules = PipelineRules()
    """The ways of items. Without reviewers: delivery_share and operations_share 0, and validation false."""
    seed: int = 0
    """The seed of designs, orders and draws, and of simulated people."""

    def __post_init__(self) -> None:
        if self.database != (default := f"sqlite:///{DATABASE_FILE}") and self.secret is not None:
            raise ConfigError("two addresses of one database", where="database", do="leave out database, or secret")
        if self.people == "simulated" and (self.database != default or self.secret is not None):
            problem = "simulated people work in a database of their own, which is not that of people"
            raise ConfigError(problem, where="database", do="leave out database and secret")
        if "@" in self.database and ":" in self.database.rpartition("@")[0].rpartition("//")[2]:
            raise ConfigError(
                "an address with a password would be written into the records",
                where="database",
                do="put the address into an environment variable, and name that one: secret",
            )


_DEFAULT = Config()


class _Matches(NamedTuple):
    """The cases of a file against the items of a project: equal ones, cases without an item, items without a case."""

    num_equal: int
    num_missing: int
    num_others: int


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
            project = session.get_one(StoredProject, simulation.crew.project)
            _import_all(session, project, every, batch="simulated", where=cases, at=at)
            return _reference_of(project, database="", secret=None)

        reference = database.write(load)
        states = work_until_finished(simulation)
    if unfinished := sum(number for state, number in states.items() if state not in _ENDED):
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
        imported = database.write(lambda session: _import_once(session, cases, config, reference, at=at))
        # Before people are waited for: a second import would ask them the same again.
        write_reference(file, imported)
        with database.reading() as session:
            project = find_project(session, imported, where=database.shown_address)
            states = count_states(session, project.id)
            if set(states) - _ENDED:
                raise _waiting(session, project, states, database, config)
            return states
    finally:
        database.close()


def _import_once(
    session: Session, cases: Path, config: Config, reference: ProjectReference | None, *, at: float
) -> ProjectReference:
    """Return where the cases are; they are imported unless all of them are there."""
    if reference is None:
        # Of two runs that begin at once the second one finds the project of the first.
        lock_names(session)
        # Terminals differ in how they write letters with marks.
        names = (config.project.strip(), normalize_name(config.project))
        project = session.scalar(select(StoredProject).where(StoredProject.name.in_(names)))
    else:
        project = find_project(session, reference, where=config.project)
    if project is None:
        settings = ProjectSettings(rules=config.rules, tasks=config.tasks, seed=config.seed)
        project = add_project(session, config.project, settings, by=None, at=at)
    elif project.is_simulated:
        do = Advice("name another ", Remedy("project"), ", or another database")
        raise ConfigError(f"the people of the project {project.name!r} are simulated", where="project", do=do)
    elif reference is None:
        _check_settings(project, config)
    settings = settings_of(project)
    matches = _compare(session, project, importable_cases(read_cases(cases), settings))
    is_new = not matches.num_equal and not matches.num_others
    if not config.add and not is_new and (matches.num_missing or matches.num_others):
        others = number_of(matches.num_others, "item")
        raise ConfigError(
            f"the project {project.name!r} has other cases: {number_of(matches.num_missing, 'case')} of the file"
            f" {'is' if matches.num_missing == 1 else 'are'} not in it, and "
            f"{others} of it {'is' if matches.num_others == 1 else 'are'} not in the file",
            where=str(cases),
            do="name another project, or set add = true for this stage, which adds what is missing",
        )
    if matches.num_missing:
        missing = _without_items(session, project, importable_cases(read_cases(cases), settings))
        _import_all(session, project, missing, batch=f"recipe {file_hash(cases)[:12]}", where=cases, at=at)
    elif is_new:
        raise EvidenceError("no case of the file gets a task", where=str(cases))
    address = "" if config.secret is not None else config.database
    return _reference_of(project, database=address, secret=config.secret)


def _import_all(
    session: Session,
    project: StoredProject,
    cases: Iterator[Case] | tuple[Case, ...],
    *,
    batch: str,
    where: Path,
    at: float,
) -> None:
    imported = import_cases(session, project, cases, batch=batch, by=None, at=at)
    if not imported.num_items:
        raise EvidenceError("no case of the file gets a task", where=str(where))


def _reference_of(project: StoredProject, *, database: str, secret: str | None) -> ProjectReference:
    return ProjectReference(
        database=database,
        secret=secret,
        project=project.id,
        name=project.name,
        created_at=project.created_at,
        is_simulated=project.is_simulated,
    )


def _check_settings(project: StoredProject, config: Config) -> None:
    """Raise ConfigError for a project that others made, with settings that decide about answers in another way."""
    present = msgspec.to_builtins(settings_of(project))
    wanted = msgspec.to_builtins(ProjectSettings(rules=config.rules, tasks=config.tasks, seed=config.seed))
    pairs = [("seed", present["seed"], wanted["seed"])]
    pairs += [
        (f"{table}.{key}", present[table][key], wanted[table][key])
        for table in ("tasks", "rules")
        for key in wanted[table]
    ]
    differing = [f"{name} {there} there, {here} here" for name, there, here in pairs if there != here]
    if differing:
        raise ConfigError(
            f"the project {project.name!r} has other settings: {'; '.join(differing[:_NAMED_IN_ERROR])}",
            where="project",
            do=Advice("name another ", Remedy("project"), ", or give the settings that it has"),
        )


def _compare(session: Session, project: StoredProject, cases: Iterator[Case]) -> _Matches:
    """Compare cases with the items of a project. Raises EvidenceError for a case whose item has another content."""
    num_equal = num_missing = 0
    while block := list(islice(cases, _BLOCK)):
        stored = _stored(session, project, block)
        for case in block:
            line = stored.get((case.prompt.id, case.prompt.language or ""))
            if line is None:
                num_missing += 1
            elif line == encode_case(case).decode():
                num_equal += 1
            else:
                raise EvidenceError(
                    f"prompt {case.prompt.id!r} differs from the one that the people of {project.name!r} answer to",
                    where="cases",
                    do=Advice("name another ", Remedy("project"), " for the new texts"),
                )
    items = session.scalar(select(func.count(StoredItem.id)).where(StoredItem.project_id == project.id)) or 0
    return _Matches(num_equal, num_missing, items - num_equal)


def _without_items(session: Session, project: StoredProject, cases: Iterator[Case]) -> Iterator[Case]:
    while block := list(islice(cases, _BLOCK)):
        stored = _stored(session, project, block)
        yield from (case for case in block if (case.prompt.id, case.prompt.language or "") not in stored)


def _stored(session: Session, project: StoredProject, cases: list[Case]) -> dict[tuple[str, str], str]:
    columns = select(StoredItem.prompt, StoredItem.language, StoredItem.case_json)
    ids = {case.prompt.id for case in cases}
    rows = session.execute(columns.where(StoredItem.project_id == project.id, StoredItem.prompt.in_(ids)))
    return {(prompt, language): line for prompt, language, line in rows}


def _waiting(
    session: Session, project: StoredProject, states: dict[str, int], database: Database, config: Config
) -> WaitingError:
    """Return the error that says what people have to do, and how they reach it."""
    total, ended = sum(states.values()), sum(states.get(state, 0) for state in _ENDED)
    open_tasks = select(func.sum(StoredTask.num_wanted - StoredTask.num_answered)).where(
        StoredTask.project_id == project.id,
        StoredTask.is_retired.is_(False),
        StoredTask.is_gold.is_(False),
        StoredTask.num_answered < StoredTask.num_wanted,
    )
    answers = number_of(session.scalar(open_tasks) or 0, "answer")
    if config.secret is None:
        serving = Advice("serve it: ", Command("workbench serve", (), (Remedy("database", config.database),)))
    else:
        serving = Advice(f"serve the address in {config.secret}: ", Command("workbench serve"))
    return WaitingError(
        Advice(
            f"{total - ended} of {number_of(total, 'item')} of the project {project.name!r} wait for people, with "
            f"{answers} to come: ",
            joined("; ", waiting_lines(session, project.id)),
        ),
        where=database.shown_address,
        do=Advice(serving, ", and run the same command again when they have finished"),
        num_waiting=total - ended,
    )
