"""Tasks for another annotation tool, as annotators may see them, and the manifest that tells what each of them is.

A tool gets letters in an order that is drawn for each task, and texts with masked names: nothing that says who wrote a
response. The manifest, which has the ids behind the letters, stays with the reader of the answers.
"""

import hashlib
from collections.abc import Iterable, Sequence
from string import ascii_uppercase
from typing import NamedTuple

import msgspec
from sqlalchemy import select
from sqlalchemy.orm import Session

from steelyard.annotation.external_answers import ExternalAnswer
from steelyard.annotation.task_kinds import TaskRules, kinds_of
from steelyard.core.errors import ConfigError, FileError
from steelyard.core.numerics import generator
from steelyard.core.remedies import FOLDER, Advice, Remedy
from steelyard.core.text import response_text
from steelyard.core.types import Case, Message, Record
from steelyard.workbench.pipeline.projects import DEFAULT_DISCARDS, case_of, settings_of
from steelyard.workbench.storage.tables import StoredItem, StoredProject, StoredTask
from steelyard.workbench.views.blinding import BlindTask, blind_task
from steelyard.workbench.views.guidelines import latest_guidelines

MANIFEST = "manifest.json"
_RANKED_KINDS = ("triple", "pairwise")
_PAIR = 2
_KEY_DIGITS = 16


class ManifestTask(Record, frozen=True, kw_only=True, omit_defaults=False):
    """An open task. ``shown``: the ids of its responses in the order A, B, C; ``number``: that of a workbench's row.

    ``has_scores``: the task asks for scores from 0 to 5. ``wanted``: how many people are to answer it.
    """

    key: str
    prompt: str
    language: str | None
    shown: tuple[str, ...]
    has_scores: bool
    wanted: int
    number: int | None = None

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters under which the tool knows the responses."""
        return tuple(ascii_uppercase[: len(self.shown)])

    @property
    def group(self) -> str:
        """The folder of tasks that need the same form and as many people."""
        form = "pairs" if not self.has_scores else "triples" if len(self.shown) > _PAIR else "scored_pairs"
        return f"{form}_by_{self.wanted}"


class TaskManifest(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Tasks written for one tool. ``project``: the workbench's, null where the tasks are those of a case file.

    ``seed`` decided the order in which each task shows its responses.
    """

    format: int = 1
    tool: str
    seed: int
    project: str | None
    discard_reasons: tuple[str, ...]
    tasks: tuple[ManifestTask, ...]

    @property
    def by_key(self) -> dict[str, ManifestTask]:
        """The tasks by their keys."""
        return {task.key: task for task in self.tasks}


class ReadExport(NamedTuple):
    """The answers of an export to the tasks of a manifest; ``not_answers`` counts drafts and the like by reason."""

    manifest: TaskManifest
    answers: tuple[ExternalAnswer, ...]
    not_answers: dict[str, int]


class ExternalTask(Record, frozen=True, kw_only=True):
    """A task as a tool may show it: the prompt and the masked texts of the responses by letter."""

    entry: ManifestTask
    prompt: tuple[Message, ...]
    category: str
    texts: dict[str, str]


class ExternalTasks(Record, frozen=True, kw_only=True):
    """Tasks for a tool, with the guidelines that its pages show, by language."""

    manifest: TaskManifest
    tasks: tuple[ExternalTask, ...]
    guidelines: dict[str, str]

    def groups(self) -> dict[str, tuple[ExternalTask, ...]]:
        """Return the tasks by the form that they need, in their order."""
        names = dict.fromkeys(task.entry.group for task in self.tasks)
        return {name: tuple(task for task in self.tasks if task.entry.group == name) for name in names}


def tasks_of_project(session: Session, project: StoredProject, tool: str, *, seed: int) -> ExternalTasks:
    """Return the open tasks of a project that are not gold. Raises ConfigError for a kind that no other tool asks for.

    ``wanted`` counts the people that a task still lacks.
    """
    settings = settings_of(project)
    if kinds_of(settings.tasks)[0].name not in _RANKED_KINDS:
        raise ConfigError(
            f"the project {project.name!r} has tasks of the kind {settings.tasks.kind!r}",
            where="project",
            allowed="ranking or pairwise: other kinds have forms that other tools lack",
        )
    rows = session.execute(
        select(StoredTask, StoredItem)
        .join(StoredItem, StoredTask.item_id == StoredItem.id)
        .where(StoredTask.project_id == project.id, StoredTask.is_gold.is_(False), StoredTask.is_open.is_(True))
        .order_by(StoredTask.id)
    )
    tasks: list[ExternalTask] = []
    for task, item in rows:
        entry = ManifestTask(
            key=f"task-{task.id}",
            prompt=item.prompt,
            language=item.language or None,
            shown=_shuffled(task.responses, f"task-{task.id}", seed),
            has_scores=task.kind == "triple",
            wanted=task.num_wanted - task.num_reserved,
            number=task.id,
        )
        tasks.append(_external_task(entry, case_of(item)))
    return ExternalTasks(
        manifest=_manifest(tool, seed, project.name, settings.discard_reasons, tasks),
        tasks=tuple(tasks),
        guidelines=_guidelines(session, project.id),
    )


def tasks_of_cases(cases: Iterable[Case], rules: TaskRules, tool: str, *, seed: int, wanted: int) -> ExternalTasks:
    """Return the tasks of a case file: triples, and a pair where a case has two responses. ``wanted``: people a task.

    Raises ConfigError where no case has two responses.
    """
    tasks: list[ExternalTask] = []
    for case in cases:
        for kind in kinds_of(rules):
            design = kind.design(case, rules, seed=seed)
            if design is not None:
                entries = [_entry(case, shown, seed, kind.name == "triple", wanted) for shown in design]
                tasks += [_external_task(entry, case) for entry in entries]
                break
    if not tasks:
        raise ConfigError("no case has two responses", where="CASES", do="name a case file with responses to compare")
    return ExternalTasks(
        manifest=_manifest(tool, seed, None, DEFAULT_DISCARDS, tasks), tasks=tuple(tasks), guidelines={}
    )


def read_manifest(content: bytes, where: str) -> TaskManifest:
    """Return the manifest of exported tasks. Raises FileError for a file that is something else."""
    try:
        manifest = msgspec.json.decode(content, type=TaskManifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FileError(
            f"is no manifest of exported tasks ({error})",
            where=where,
            do=Advice("name the folder of workbench tasks: ", Remedy("tasks", FOLDER)),
        ) from None
    if manifest.format != 1:
        raise FileError(f"has the format {manifest.format}", where=where, allowed="1", do="update steelyard")
    return manifest


def blind_entry(entry: ManifestTask, case: Case) -> BlindTask:
    """Return the responses of an exported task with the texts that the tool showed."""
    texts = {response.id: response_text(response) for response in case.responses}
    return blind_task({response: texts[response] for response in entry.shown})


def _external_task(entry: ManifestTask, case: Case) -> ExternalTask:
    blind = blind_entry(entry, case)
    return ExternalTask(
        entry=entry,
        prompt=case.prompt.messages,
        category=case.prompt.category[0] if case.prompt.category else "",
        texts={letter: text.shown for letter, text in blind.texts.items()},
    )


def _entry(case: Case, responses: Sequence[str], seed: int, has_scores: bool, wanted: int) -> ManifestTask:  # noqa: FBT001
    # The same task of the same case has the same key, and the key tells nothing: ids may name a model.
    name = msgspec.json.encode([case.prompt.id, case.prompt.language, sorted(responses)])
    key = f"task-{hashlib.sha256(name).hexdigest()[:_KEY_DIGITS]}"
    return ManifestTask(
        key=key,
        prompt=case.prompt.id,
        language=case.prompt.language,
        shown=_shuffled(responses, key, seed),
        has_scores=has_scores,
        wanted=wanted,
    )


def _shuffled(responses: Sequence[str], key: str, seed: int) -> tuple[str, ...]:
    # A text is a sequence of texts, too.
    responses = list(responses)
    order = generator(seed, "order in another tool", key).permutation(len(responses))
    return tuple([responses[place] for place in order])


def _manifest(
    tool: str, seed: int, project: str | None, reasons: tuple[str, ...], tasks: Sequence[ExternalTask]
) -> TaskManifest:
    entries = tuple(task.entry for task in tasks)
    return TaskManifest(tool=tool, seed=seed, project=project, discard_reasons=reasons, tasks=entries)


def _guidelines(session: Session, project: int) -> dict[str, str]:
    """Return the newest guidelines of a project as one text for each language, those of a category under its name."""
    texts: dict[str, list[str]] = {}
    for guideline in latest_guidelines(session, project):
        head = [f"# {guideline.category}"] if guideline.category else []
        texts.setdefault(guideline.language, []).append("\n\n".join([*head, guideline.text]))
    return {language: "\n\n".join(parts) for language, parts in texts.items()}
