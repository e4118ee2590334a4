"""The demonstration's other projects: one for each kind of tasks but triples, half of it finished by simulated people.

Texts of pairs, baselines, prompts and marks are those of the built-in corpus. Translations are the descriptions of the
taxonomy in English with their Chinese versions, one as it is and one that lacks its end.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec
from sqlalchemy.orm import Session

from steelyard.annotation.task_kinds import TaskRules, kind_names
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.prompts.taxonomy import taxonomy
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.simulated_people import Simulation, latent_qualities
from steelyard.workbench.simulation import work_until_finished
from steelyard.workbench.storage.tables import StoredProject

_NUM_RESPONSES = {"pairwise": 2, "baseline": 3, "span_marking": 2}
_HALF = 4


def add_kinds(simulation: Simulation, cases: Sequence[Case]) -> None:
    """Add a project for each kind of tasks but triples: four items are finished, four wait for the visitor."""
    for name in kind_names():
        if name != "triple":
            _add_kind(simulation, name, cases_of_kind(name, cases, 2 * _HALF))


def cases_of_kind(name: str, cases: Sequence[Case], number: int) -> list[Case]:
    """Return cases with what tasks of a kind show, made of cases with rankings, or of the taxonomy."""
    if name == "translation_quality":
        return list(islice(_translations(), number))
    made = [_with_responses(case, name) for case in cases]
    return [case for case in made if case is not None][:number]


def _add_kind(simulation: Simulation, name: str, cases: Sequence[Case]) -> None:
    title = f"Simulated: {name.replace('_', ' ')}"
    tasks = msgspec.convert({"kind": name}, TaskRules)

    def make(session: Session) -> int:
        settings = ProjectSettings(tasks=tasks, seed=simulation.seed)
        project = add_project(session, title, settings, by=None, at=simulation.begun_at, is_simulated=True)
        import_cases(session, project, cases[:_HALF], batch="batch 1", by=None, at=simulation.begun_at)
        return project.id

    project = simulation.database.write(make)
    # These projects took their people a few minutes.
    of_kind = simulation._replace(
        crew=simulation.crew._replace(project=project),
        qualities=latent_qualities(cases, tasks, seed=simulation.seed),
        pace=1.0,
    )
    work_until_finished(of_kind)

    def add_open(session: Session) -> None:
        stored = session.get_one(StoredProject, project)
        import_cases(session, stored, cases[_HALF:], batch="batch 2", by=None, at=simulation.begun_at)

    simulation.database.write(add_open)


def _with_responses(case: Case, name: str) -> Case | None:
    """Return the case with the responses that a task of a kind needs, without authors and rankings of others."""
    best, worst = (case.ranking or ((),))[0][:1], (case.ranking or ((),))[-1][:1]
    reference = (best, worst) if name == "native_check" else None
    if reference is not None and (not best or best == worst):
        return None
    wanted = (
        set(best + worst)
        if reference is not None
        else {response.id for response in case.responses[: _NUM_RESPONSES.get(name, 0)]}
    )
    responses = tuple(msgspec.structs.replace(each, author=None) for each in case.responses if each.id in wanted)
    bare = msgspec.structs.replace(case, responses=responses, pairs=None, judgments=(), ratings=())
    return msgspec.structs.replace(bare, ranking=reference)


def _translations() -> Iterator[Case]:
    """Yield descriptions of main categories as sources with their Chinese versions, whole and without the end."""
    for key, category in taxonomy().categories.items():
        whole = category.about_zh
        versions = {"whole": (whole, 0.9), "cut": (whole[: 2 * len(whole) // 3], 0.5)}
        yield Case(
            prompt=Prompt(
                id=f"taxonomy-{key}", language="zh", messages=(Message(role="user", content=category.about_en),)
            ),
            responses=tuple(
                Response(id=name, text=text, meta={"quality": quality}) for name, (text, quality) in versions.items()
            ),
        )
