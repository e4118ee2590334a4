"""The errors that a user can cause. Errors of libraries are translated into these at the boundary.

UserError                the request cannot be carried out: exit code 2, no traceback
├── FileError            a file that is absent, empty, an LFS pointer, not UTF-8, or broken
├── RecordError          a line of a file that is not what its format says
├── ConfigError          an unknown setting, a wrong type, a value that is not allowed
├── KindError            a plug-in that does not exist, or a file of unknown format
├── OutputError          an output that cannot be written, or a folder that holds something else
├── ModelError           a model that cannot be used as a reward model as it stands
├── MissingPartError     an optional group of packages that is not installed
└── EvidenceError        cases that lack what the request needs (judgments, pairs, a ranking, a score)
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from steelyard.core.peer_names import our_name

_MOST_NAMES = 20


class Place(NamedTuple):
    """A position in the user's input: a file, a line and a path inside the record."""

    file: str
    line: int | None = None
    path: str | None = None

    def __str__(self) -> str:
        line = "" if self.line is None else f":{self.line}"
        path = "" if self.path is None else f" at {self.path}"
        return f"{self.file}{line}{path}"


class UserError(Exception):
    """A problem, where it is, what is allowed there, and what to do about it."""

    def __init__(
        self, problem: str, *, where: Place | str | None = None, allowed: str | None = None, do: str | None = None
    ) -> None:
        self.problem = problem
        self.where = where
        self.allowed = allowed
        self.do = do
        super().__init__(str(self))

    def __str__(self) -> str:
        first = self.problem if self.where is None else f"{self.where}: {self.problem}"
        rest = [f"  {name}: {text}" for name, text in (("allowed", self.allowed), ("do", self.do)) if text]
        return "\n".join([first, *rest])

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.problem, self.where, self.allowed, self.do))

    def at(self, where: Place) -> "UserError":
        """Return the same error with its place."""
        return type(self)(self.problem, where=where, allowed=self.allowed, do=self.do)


def _rebuild(
    kind: type[UserError], problem: str, where: Place | str | None, allowed: str | None, do: str | None
) -> UserError:
    return kind(problem, where=where, allowed=allowed, do=do)


class FileError(UserError):
    """A file that is absent, empty, an LFS pointer, not UTF-8, or broken."""


class RecordError(UserError):
    """A line of a file that is not what its format says."""


class ConfigError(UserError):
    """An unknown setting, a wrong type, a value that is not allowed."""


class KindError(UserError):
    """A plug-in that does not exist, or a file of unknown format."""


class OutputError(UserError):
    """An output that cannot be written, or a folder that holds something else."""


class ModelError(UserError):
    """A model that cannot be used as a reward model as it stands."""


class MissingPartError(UserError):
    """An optional group of packages that is not installed."""


class EvidenceError(UserError):
    """Cases that lack what the request needs."""


def listed(names: Sequence[str]) -> str:
    """Join names for a message; of more than twenty, only the first twenty."""
    return ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")


def repeated(names: Iterable[str]) -> str:
    """Return the most frequent name."""
    return Counter(names).most_common(1)[0][0]


def choices(value: str, allowed: Iterable[str]) -> str:
    """List the allowed values after a hint at the nearest one: ``did you mean …?``

    For another library's name of a setting the hint is ours.
    """
    names = sorted(allowed)
    near = our_name(value, names) or next(iter(difflib.get_close_matches(value, names, n=1, cutoff=0.5)), None)
    hint = f"did you mean {near!r}? " if near else ""
    return hint + (", ".join(names) or "nothing")
