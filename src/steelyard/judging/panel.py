"""Choosing and building judges: a chat with a way of asking it, or a panel of several."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.core.config import Config, resolve_config
from steelyard.core.errors import ConfigError, FileError
from steelyard.core.plugins import build, load
from steelyard.core.protocols import Chat, Judge
from steelyard.core.types import JsonObject, Meta
from steelyard.judging.planning import JudgeTask

DEFAULT_CHAT = "openai_compatible"
JUDGE_OF_TASK = {"pairs": "pairwise", "triples": "ranking", "best": "best", "ratings": "rating"}
"""The kind of judge that answers the comparisons of a task."""

_FILES = ("path", "chat_template")
"""Settings of a chat that name a file or folder: inputs of a run, identified by content, not by place."""


class PanelMember(Config, frozen=True):
    """One judge: its ``chat`` (``kind`` and the chat's own settings) and its ``judge`` (settings of the way of asking).

    ``price`` is what a million tokens cost, of prompts and of replies, in any currency.
    """

    chat: Meta = msgspec.field(default_factory=dict)
    """The chat: its kind and the settings of the kind (docs/settings.md, under chats)."""
    judge: Meta = msgspec.field(default_factory=dict)
    """The style of the questions and its settings: docs/settings.md, under judges."""
    price: tuple[float, float] | None = None
    """The price of a million tokens, of prompts and of replies, in any currency."""


class JudgeChoice(NamedTuple):
    """The settings of a judge, checked, with the files among its chat's settings."""

    chat: JsonObject
    judge: JsonObject
    files: dict[str, Path]
    price: tuple[float, float] | None


class PanelChoice(NamedTuple):
    """The settings of one judge or of a panel, with the same task for all."""

    task: JudgeTask
    members: tuple[JudgeChoice, ...]

    def inputs(self, role: str = "chat") -> dict[str, Path]:
        """Return the files by role, as a run records its inputs."""
        return {
            f"{role}.{number}.{key}": path
            for number, member in enumerate(self.members)
            for key, path in member.files.items()
        }

    def settings(self) -> JsonObject:
        """Return all settings that determine the verdicts, defaults included."""
        members = [{"chat": member.chat, "judge": member.judge, "price": member.price} for member in self.members]
        return {"task": self.task, "members": members}


class PanelJudge(NamedTuple):
    """A judge that can be asked: the name that signs, the chat, and the way of asking."""

    name: str
    chat: Chat
    judge: Judge
    price: tuple[float, float] | None = None

    def protocol(self) -> JsonObject:
        """Return the settings that must be equal for verdicts to be comparable."""
        return {"chat": self.chat.protocol(), "judge": self.judge.protocol()}


class JudgePanel(NamedTuple):
    """One judge or a panel. ``name`` signs its verdicts."""

    name: str
    task: JudgeTask
    members: tuple[PanelJudge, ...]

    def protocol(self) -> JsonObject:
        """Return the protocols of all members."""
        members = {member.name: member.protocol() for member in self.members}
        return {"model": self.name, "task": self.task, "members": members}


def choose_panel(
    task: JudgeTask,
    *,
    chat: Mapping[str, object],
    judge: Mapping[str, object],
    price: tuple[float, float] | None = None,
    members: Sequence[PanelMember] = (),
    allow_even: bool = False,
) -> PanelChoice:
    """Choose the judge of ``chat`` and ``judge``, or the panel of ``members``.

    Raises ConfigError for a panel that cannot vote: one of an even number without ``allow_even``, or a task without
    verdicts on pairs. Raises KindError and FileError for a chat or a file that does not exist.
    """
    if not members:
        return PanelChoice(task, (_choose_judge(task, PanelMember(chat=dict(chat), judge=dict(judge), price=price)),))
    if chat or judge:
        raise ConfigError("members, and a chat or judge beside them", do="give each member its chat and judge")
    if task not in ("pairs", "triples"):
        raise ConfigError(f"a panel cannot vote on {task}", where="members", allowed="pairs, triples")
    if len(members) % 2 == 0 and not allow_even:
        problem = f"a panel of {len(members)}: an even number can be split"
        raise ConfigError(
            problem, where="members", do="take an odd number, or say --set allow_even=true: a draw is a tie"
        )
    return PanelChoice(task, tuple(_choose_judge(task, member) for member in members))


def build_panel(choice: PanelChoice, *, name: str = "panel") -> JudgePanel:
    """Build the judges; ``name`` signs for several. Raises ConfigError for two judges of one name."""
    members = tuple(_build_judge(choice.task, member) for member in choice.members)
    names = [member.name for member in members]
    if len({*names, name}) < len(names) + 1 and len(names) > 1:
        problem = f"two judges of one name: {', '.join(names)}, {name}"
        raise ConfigError(problem, where="members", do="give each chat a name")
    return JudgePanel(name if len(members) > 1 else names[0], choice.task, members)


def _choose_judge(task: JudgeTask, member: PanelMember) -> JudgeChoice:
    """Check the settings of one judge, and fill in defaults."""
    settings = dict(member.chat)
    kind = settings.pop("kind", DEFAULT_CHAT)
    chat = msgspec.to_builtins(resolve_config(load("chats", kind).Config, settings, where=f"chat.{kind}"))
    files = {key: Path(chat.pop(key)) for key in _FILES if chat.get(key)}
    for path in files.values():
        if not path.exists():
            raise FileError("there is no such file or folder", where=str(path), do="check the path")
    style = JUDGE_OF_TASK[task]
    judge = msgspec.to_builtins(resolve_config(load("judges", style).Config, member.judge, where=f"judge.{style}"))
    # Built for its checks alone: refused settings must raise before anything is written.
    build("judges", style, judge)
    return JudgeChoice({"kind": kind, **chat}, judge, files, member.price)


def _build_judge(task: JudgeTask, choice: JudgeChoice) -> PanelJudge:
    settings = {key: value for key, value in choice.chat.items() if key != "kind"}
    chat = build("chats", choice.chat["kind"], settings | {key: str(path) for key, path in choice.files.items()})
    return PanelJudge(chat.name, chat, build("judges", JUDGE_OF_TASK[task], choice.judge), choice.price)
