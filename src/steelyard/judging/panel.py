"""Choosing and building judges: a chat with a way of asking it, or a panel of several."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from steelyard.core.comparison import Comparison
from steelyard.core.config import Config, resolve_config
from steelyard.core.errors import ConfigError, FileError, errors_at
from steelyard.core.plugins import build, load
from steelyard.core.protocols import Chat, Judge
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import JsonObject, Meta
from steelyard.judging.planning import JudgeTask
from steelyard.judging.token_use import AnyPrice, Price

DEFAULT_CHAT = "openai_compatible"
JUDGE_OF_TASK = {"pairs": "pairwise", "triples": "ranking", "best": "best", "ratings": "rating"}
"""The kind of judge that answers the comparisons of a task."""

_FILES = ("path", "chat_template")
"""Settings of a chat that name a file or folder: inputs of a run, identified by content, not by place."""
_PACE = ("workers", "timeout_seconds", "total_seconds", "num_tries", "wait_seconds", "longest_wait_seconds")
"""Settings of a chat that decide when requests are sent, and not their content."""


def asked_settings(chat: JsonObject) -> JsonObject:
    """Return the settings of a chat that decide the content of its requests, without those of its pace."""
    return {key: value for key, value in chat.items() if key not in _PACE}


def is_same_chat(chat: JsonObject, recorded: JsonObject) -> bool:
    """Return whether a run records these settings of a chat: as they were given, or with defaults and without files."""
    settings = asked_settings(recorded)
    if settings == asked_settings(chat):
        return True
    return bool(chat) and settings == asked_settings(_filled(chat, where="chat").settings)


def chat_files(chat: JsonObject) -> dict[str, Path]:
    """Return the files among the settings of a chat, by setting; none where no chat is given."""
    return _filled(chat, where="chat").files if chat else {}


class PanelMember(Config, frozen=True):
    """One judge: its ``chat`` (``kind`` and the chat's own settings) and its ``judge`` (settings of the way of asking).

    ``price`` is what a million tokens cost, of prompts and of replies, in any currency.
    """

    chat: Meta = msgspec.field(default_factory=dict)
    """The chat: its kind and the settings of the kind (docs/settings.md, under chats)."""
    judge: Meta = msgspec.field(default_factory=dict)
    """The style of the questions and its settings: docs/settings.md, under judges."""
    price: AnyPrice | None = None
    """Prices of a million tokens in any currency, [input, output], or with cached_input and cache_write by name."""


class PanelConfig(PanelMember, frozen=True):
    """One judge, or a panel of judges that a subclass has in a field of its own."""

    allow_even: bool = False
    """Accept a panel with an even number of members, whose votes can be even."""
    name: str = "panel"
    """The name of the panel in the judgments."""
    max_truncated: float = 0.2
    """The largest share of replies that may be cut off."""


class ChatChoice(NamedTuple):
    """The settings of a chat, checked, with its kind; ``files`` are the files among them, by setting."""

    settings: JsonObject
    files: dict[str, Path]


class JudgeChoice(NamedTuple):
    """The settings of a judge, checked, with the files among its chat's settings.

    ``built`` is a chat that is an object; ``chat`` is its protocol then.
    """

    chat: JsonObject
    judge: JsonObject
    files: dict[str, Path]
    price: AnyPrice | None
    built: Chat | None = None


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

    def priced(self, prices: JsonObject, *, where: str) -> "PanelChoice":
        """Return the choice with the prices of these tables, by the name of the chat or of its model.

        A price in the settings stays. Raises ConfigError for a table without prices, and where no model has one.
        """
        tables = {name: _prices(name, table, where) for name, table in prices.items()}
        names = [[member.chat[key] for key in ("name", "model") if member.chat.get(key)] for member in self.members]
        fitting = [next((tables[name] for name in of_chat if name in tables), None) for of_chat in names]
        if not any(fitting):
            models = ", ".join(of_chat[-1] for of_chat in names if of_chat) or "the judge"
            do = f"add a table to it: [{msgspec.json.encode(models).decode()}]"
            raise ConfigError(f"it has no price of {models}", where=where, allowed=", ".join(tables), do=do)
        members = zip(self.members, fitting, strict=True)
        return self._replace(members=tuple(member._replace(price=member.price or price) for member, price in members))

    def settings(self) -> JsonObject:
        """Return all settings that determine the verdicts, defaults included: no prices, and no pace of sending."""
        members = [{"chat": asked_settings(member.chat), "judge": member.judge} for member in self.members]
        return {"task": self.task, "members": members}


def _prices(name: str, table: object, where: str) -> Price:
    """Return the prices of one table of a file. Raises ConfigError for anything but a table."""
    if not isinstance(table, dict):
        do = "write [NAME OF THE MODEL], and below it input = 1.0 and output = 2.0"
        raise ConfigError(f"{name} is not a table of prices", where=where, do=do)
    return resolve_config(Price, cast("JsonObject", table), where=f"{where}: {name}")


class PanelJudge(NamedTuple):
    """A judge that can be asked: the name that signs, the chat, and the way of asking.

    It gets every question ``repeats`` times, and the verdict is that of most repeats.
    """

    name: str
    chat: Chat
    judge: Judge
    price: AnyPrice | None = None
    repeats: int = 1

    def num_requests(self, comparison: Comparison) -> int:
        """Return the number of requests for a comparison."""
        return self.repeats * self.judge.num_questions(comparison)

    def protocol(self) -> JsonObject:
        """Return the settings that must be equal for verdicts to be comparable."""
        repeats = {"repeats": self.repeats} if self.repeats > 1 else {}
        return {"chat": self.chat.protocol(), "judge": self.judge.protocol(), **repeats}


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
    price: AnyPrice | None = None,
    members: Sequence[PanelMember] = (),
    allow_even: bool = False,
    built: Chat | None = None,
) -> PanelChoice:
    """Choose the judge of ``chat`` and ``judge``, or the panel of ``members``. ``built`` is a chat instead of settings.

    Raises ConfigError for a panel that cannot vote: one of an even number without ``allow_even``, or a task without
    verdicts on pairs. Raises KindError and FileError for a chat or a file that does not exist.
    """
    if built is not None:
        if members or chat:
            raise ConfigError("a judge that is an object, and a chat beside it", do="leave chat and members away")
        style = _style_settings(task, judge)
        return PanelChoice(task, (JudgeChoice(built.protocol(), style, {}, price, built),))
    if not members:
        return PanelChoice(task, (_choose_judge(task, PanelMember(chat=dict(chat), judge=dict(judge), price=price)),))
    if chat or judge:
        raise ConfigError("members, and a chat or judge beside them", do="give each member its chat and judge")
    if task not in ("pairs", "triples"):
        raise ConfigError(f"a panel cannot vote on {task}", where="members", allowed="pairs, triples")
    if len(members) % 2 == 0 and not allow_even:
        problem = f"a panel of {len(members)}: an even number can be split"
        raise ConfigError(
            problem,
            where="members",
            do=Advice("take an odd number, or say ", Remedy("allow_even", value=True), ": a draw is a tie"),
        )
    return PanelChoice(task, tuple(_choose_judge(task, member) for member in members))


def build_panel(choice: PanelChoice, *, name: str = "panel", repeats: int = 1) -> JudgePanel:
    """Build the judges; ``name`` signs for several. Raises ConfigError for two judges of one name."""
    members: list[PanelJudge] = []
    for member in choice.members:
        chat = member.built or build_chat(ChatChoice(member.chat, member.files))
        judge = build("judges", JUDGE_OF_TASK[choice.task], member.judge)
        members.append(PanelJudge(chat.name, chat, judge, member.price, repeats))
    names = [member.name for member in members]
    if len({*names, name}) < len(names) + 1 and len(names) > 1:
        problem = f"two judges of one name: {', '.join(names)}, {name}"
        raise ConfigError(problem, where="members", do="give each chat a name")
    return JudgePanel(name if len(members) > 1 else names[0], choice.task, tuple(members))


def choose_chat(settings: Mapping[str, object], *, where: str = "chat") -> ChatChoice:
    """Check the settings of a chat, ``kind`` among them, and fill in defaults; nothing is built or sent.

    Raises KindError for an unknown kind, ConfigError for a wrong setting, FileError for a file that does not exist.
    """
    choice = _filled(settings, where=where)
    for path in choice.files.values():
        if not path.exists():
            raise FileError("there is no such file or folder", where=str(path), do="check the path")
    return choice


def _filled(settings: Mapping[str, object], *, where: str) -> ChatChoice:
    """Return the checked settings with defaults; files need not exist yet."""
    others = dict(settings)
    kind = str(others.pop("kind", DEFAULT_CHAT))
    with errors_at(where):
        checked = msgspec.to_builtins(resolve_config(load("chats", kind).Config, others, where=f"{where}.{kind}"))
    files = {key: Path(checked.pop(key)) for key in _FILES if checked.get(key)}
    return ChatChoice({"kind": kind, **checked}, files)


def build_chat(choice: ChatChoice) -> Chat:
    """Build the chat. Raises ModelError for a model that cannot be loaded."""
    settings = {key: value for key, value in choice.settings.items() if key != "kind"}
    return build("chats", choice.settings["kind"], settings | {key: str(path) for key, path in choice.files.items()})


def _choose_judge(task: JudgeTask, member: PanelMember) -> JudgeChoice:
    """Check the settings of one judge, and fill in defaults."""
    chat = choose_chat(member.chat)
    return JudgeChoice(chat.settings, _style_settings(task, member.judge), chat.files, member.price)


def _style_settings(task: JudgeTask, settings: Mapping[str, object]) -> JsonObject:
    """Return the checked settings of the way of asking, with defaults."""
    style = JUDGE_OF_TASK[task]
    judge = msgspec.to_builtins(resolve_config(load("judges", style).Config, settings, where=f"judge.{style}"))
    # Built for its checks alone: refused settings must raise before anything is written.
    build("judges", style, judge)
    return judge
