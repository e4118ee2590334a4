"""The project of a recipe at the workbench: its settings, and the cases of a file, which are imported once.

Cases are recognised by their content: the same request imports nothing a second time, also after kills between.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

import msgspec
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.annotation.pipeline import PipelineRules
from steelyard.annotation.task_kinds import TaskRules
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.names import normalize_name
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import number_of
from steelyard.core.types import Case
from steelyard.io.cases import encode_case, read_cases
from steelyard.io.hashing import file_hash
from steelyard.workbench.pipeline.case_import import import_cases, importable_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project, settings_of
from steelyard.workbench.stages._project_file import DATABASE_FILE, ProjectReference, find_project
from steelyard.workbench.storage.account_names import lock_names
from steelyard.workbench.storage.tables import StoredItem, StoredProject

_BLOCK = 500
_NAMED_IN_ERROR = 3


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


def import_once(
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
        project = add_project(session, config.project, _settings(config), by=None, at=at)
    elif project.is_simulated:
        do = Advice("name another ", Remedy("project"), ", or another database")
        raise ConfigError(f"the people of the project {project.name!r} are simulated", where="project", do=do)
    elif reference is None:
        _check_settings(project, config)
    settings = settings_of(project)
    num_equal, num_missing, num_others = _compare(session, project, importable_cases(read_cases(cases), settings))
    is_new = not num_equal and not num_others
    if not config.add and not is_new and (num_missing or num_others):
        others = number_of(num_others, "item")
        raise ConfigError(
            f"the project {project.name!r} has other cases: {number_of(num_missing, 'case')} of the file"
            f" {'is' if num_missing == 1 else 'are'} not in it, and "
            f"{others} of it {'is' if num_others == 1 else 'are'} not in the file",
            where=str(cases),
            do="name another project, or set add = true for this stage, which adds what is missing",
        )
    if num_missing:
        missing = _without_items(session, project, importable_cases(read_cases(cases), settings))
        import_all(session, project.id, missing, batch=f"recipe {file_hash(cases)[:12]}", where=cases, at=at)
    elif is_new:
        raise EvidenceError("no case of the file gets a task", where=str(cases))
    address = "" if config.secret is not None else config.database
    return ProjectReference.of(project, database=address, secret=config.secret)


def import_all(
    session: Session,
    project: int,
    cases: Iterator[Case] | tuple[Case, ...],
    *,
    batch: str,
    where: Path,
    at: float,
) -> StoredProject:
    """Import cases into a project, which is returned. Raises EvidenceError where none of them gets a task."""
    stored = session.get_one(StoredProject, project)
    if not import_cases(session, stored, cases, batch=batch, by=None, at=at).num_items:
        raise EvidenceError("no case of the file gets a task", where=str(where))
    return stored


def _settings(config: Config) -> ProjectSettings:
    return ProjectSettings(rules=config.rules, tasks=config.tasks, seed=config.seed)


def _check_settings(project: StoredProject, config: Config) -> None:
    """Raise ConfigError for a project that others made, with settings that decide about answers in another way."""
    present = msgspec.to_builtins(settings_of(project))
    wanted = msgspec.to_builtins(_settings(config))
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


def _compare(session: Session, project: StoredProject, cases: Iterator[Case]) -> tuple[int, int, int]:
    """Return the numbers of cases that equal their item, of those without an item, and of items without a case.

    Raises EvidenceError for a case whose item has another content.
    """
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
    return num_equal, num_missing, items - num_equal


def _without_items(session: Session, project: StoredProject, cases: Iterator[Case]) -> Iterator[Case]:
    while block := list(islice(cases, _BLOCK)):
        stored = _stored(session, project, block)
        yield from (case for case in block if (case.prompt.id, case.prompt.language or "") not in stored)


def _stored(session: Session, project: StoredProject, cases: list[Case]) -> dict[tuple[str, str], str]:
    columns = select(StoredItem.prompt, StoredItem.language, StoredItem.case_json)
    ids = {case.prompt.id for case in cases}
    rows = session.execute(columns.where(StoredItem.project_id == project.id, StoredItem.prompt.in_(ids)))
    return {(prompt, language): line for prompt, language, line in rows}
