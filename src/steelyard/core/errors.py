"""Everything a user can cause, drawn in one place; foreign errors are translated into these at the boundary.

UserError                what was asked cannot be done as asked: exit code 2, no traceback
├── FileError            a file that is absent, empty, an LFS pointer, not UTF-8, or broken
├── RecordError          a line of a file that is not what its format says
├── ConfigError          an unknown setting, a wrong type, a value that is not allowed
├── KindError            a plug-in that does not exist, or a file whose format cannot be told
├── OutputError          a result folder that holds something else
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
    """Where in the user's input something was found."""

    file: str
    line: int | None = None
    path: str | None = None

    def __str__(self) -> str:
        line = "" if self.line is None else f":{self.line}"
        path = "" if self.path is None else f" at {self.path}"
        return f"{self.file}{line}{path}"


class UserError(Exception):
    """Says what was found, where, what is allowed, and what to do next."""

    def __init__(
        self, found: str, *, where: Place | str | None = None, allowed: str | None = None, do: str | None = None
    ) -> None:
        self.found = found
        self.where = where
        self.allowed = allowed
        self.do = do
        super().__init__(str(self))

    def __str__(self) -> str:
        first = self.found if self.where is None else f"{self.where}: {self.found}"
        rest = [f"  {name}: {text}" for name, text in (("allowed", self.allowed), ("do", self.do)) if text]
        return "\n".join([first, *rest])

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuilt, (type(self), self.found, self.where, self.allowed, self.do))

    def at(self, where: Place) -> "UserError":
        """The same error, placed."""
        return type(self)(self.found, where=where, allowed=self.allowed, do=self.do)


def _rebuilt(
    kind: type[UserError], found: str, where: Place | str | None, allowed: str | None, do: str | None
) -> UserError:
    return kind(found, where=where, allowed=allowed, do=do)


class FileError(UserError):
    """A file that is absent, empty, an LFS pointer, not UTF-8, or broken."""


class RecordError(UserError):
    """A line of a file that is not what its format says."""


class ConfigError(UserError):
    """An unknown setting, a wrong type, a value that is not allowed."""


class KindError(UserError):
    """A plug-in that does not exist, or a file whose format cannot be told."""


class OutputError(UserError):
    """A result folder that holds something else."""


class ModelError(UserError):
    """A model that cannot be used as a reward model as it stands."""


class MissingPartError(UserError):
    """An optional group of packages that is not installed."""


class EvidenceError(UserError):
    """Cases that lack what the request needs."""


def listed(names: Sequence[str]) -> str:
    """The names for a message; of many the first twenty."""
    return ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")


def repeated(names: Iterable[str]) -> str:
    """The name that is given most often."""
    return Counter(names).most_common(1)[0][0]


def choices(given: str, allowed: Iterable[str]) -> str:
    """The allowed values, with the nearest to what was given in front: ``did you mean …?``

    Another library's name for a setting is answered with ours.
    """
    names = sorted(allowed)
    near = our_name(given, names) or next(iter(difflib.get_close_matches(given, names, n=1, cutoff=0.5)), None)
    hint = f"did you mean {near!r}? " if near else ""
    return hint + (", ".join(names) or "nothing")
