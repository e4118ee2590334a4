"""The contracts of the plug-in rooms: what a part takes and gives, and nothing about how.

A plug-in is a file with ``Config`` and ``build``; what ``build`` returns satisfies the room's protocol here.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from steelyard.core.comparison import Answer, Comparison, Question, Reply, Request
from steelyard.core.errors import Place, RecordError
from steelyard.core.types import Case, JsonObject, Scores

Given = TypeVar("Given")
Returned = TypeVar("Returned")


def is_number(value: Any) -> bool:
    """Return whether a foreign value is a finite number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


class Row(NamedTuple):
    """One record of a foreign file and its place there; the methods check the fields that they read."""

    place: Place
    value: JsonObject

    def at(self, path: str) -> Place:
        """Return the place of a field, for an error."""
        return self.place._replace(path=path)

    def text(self, key: str, *, default: str | None = None) -> str:
        """Return the text under the key. Raises RecordError when it is absent (without a default) or not a text."""
        return self._checked(key, str, "a text", default)

    def optional_text(self, key: str) -> str | None:
        """Return the text under the key, or null without one. Raises RecordError for any other value."""
        return None if self.value.get(key) is None else self.text(key)

    def items(self, key: str, *, default: Sequence[Any] | None = None) -> Sequence[Any]:
        """Return the list under the key. Raises RecordError when it is absent (without a default) or not a list."""
        return self._checked(key, list, "a list", default)

    def number(self, key: str) -> float | None:
        """Return the number under the key, or null without one. Raises RecordError for any other value."""
        value = self.value.get(key)
        if value is not None and not is_number(value):
            raise RecordError("a value that is not a number", where=self.at(key), allowed="a number, or null")
        return value

    def nulls(self, keys: Iterable[str]) -> list[str]:
        """Return the keys whose value is null, as in the optional columns of tables."""
        return [key for key in keys if key in self.value and self.value[key] is None]

    def absent(self, keys: Iterable[str]) -> list[str]:
        """Return the keys that the row lacks."""
        return [key for key in keys if key not in self.value]

    def others(self, known: Iterable[str]) -> JsonObject | None:
        """Return the fields under other keys, for ``meta``; null if there are none."""
        format_keys = set(known)
        return {key: value for key, value in self.value.items() if key not in format_keys} or None

    def _checked(self, key: str, kind: type, description: str, default: Any) -> Any:
        value = self.value.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, kind):
            problem = "lacks" if value is None else f"has {type(value).__name__} under"
            raise RecordError(f"the row {problem} {key!r}", where=self.place, allowed=f"{key}: {description}")
        return value


class Format(Protocol):
    """A foreign data format. Pure: rows in, cases out, and back; files are read and written by others.

    ``keys`` are the names that it uses itself in a row; every other key goes into the prompt's ``meta`` and comes back
    out. ``carries`` names the parts of a case that come back as they went; every other part is counted when it is lost.
    """

    keys: tuple[str, ...]
    carries: frozenset[str]

    def recognises(self, row: dict[str, Any]) -> bool:
        """Whether the row may be of this format: of several that say so, the one that uses most of its keys wins."""
        ...

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases from rows. What the record cannot hold, and repeated ids, are counted by name in ``noted``.

        Raises RecordError with the row's place for a row that is not of the format.
        """
        ...

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """Rows from cases. What the format cannot carry is counted by name in ``lost``."""
        ...


class RewardModel(Protocol):
    """Cases in, a number for each response out: a classifier, a policy with its reference, a length baseline."""

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """One Scores for each case, in order. A response that could not be scored is null with its reason."""
        ...

    def protocol(self) -> dict[str, Any]:
        """What must be equal for two scores to be comparable: data and template hashes, length, number type."""
        ...


@runtime_checkable
class FormulaModel(RewardModel, Protocol):
    """A reward model that is a formula of each case: its numbers can be had without a Scores each."""

    @property
    def values(self) -> Callable[[Case], Sequence[float]]:
        """The formula: a finite number for each response of a case, in order."""
        ...


@runtime_checkable
class TaughtModel(RewardModel, Protocol):
    """A reward model that learns from training cases, quickly enough to be taught many times in one run."""

    def taught(self, cases: Sequence[Case]) -> "TaughtModel":
        """The same model with these training cases in place of its own; it scores by nothing learnt of a prompt."""
        ...


@runtime_checkable
class AskedModel(RewardModel, Protocol):
    """A reward model that is asked for verdicts: of what it says of pairs, numbers are only a summary.

    ``name`` signs what the judges say together, ``compares_pairs`` whether it can be asked about single pairs.
    """

    name: str
    compares_pairs: bool

    def answers(
        self, cases: Sequence[Case], pairs: Sequence[Sequence[tuple[int, int]]] | None = None
    ) -> Iterator[tuple[Mapping[str, Answer], ...]]:
        """For each case what every judge says of each comparison, by its name; the last is what they say together.

        ``pairs`` are positions of responses, for each case: what is to be compared where pairs are, null for all.
        """
        ...


class Chat(Protocol):
    """A language model that answers: requests in, replies out. ``name`` is what its verdicts are signed with."""

    name: str

    def ask(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """One reply for each request, in any order, as they come; requests are taken as there is room for them.

        A request that fails is a reply that says so. Raises ModelError where no request can succeed.
        """
        ...

    def protocol(self) -> dict[str, Any]:
        """What decides the replies: model, temperature, template. Waiting and retrying are no part of it."""
        ...


class Judge(Protocol):
    """A way of asking a language model for verdicts. Pure: comparisons to questions, replies to verdicts.

    ``fewest`` and ``most`` are how many responses can be shown together, ``num_questions`` how many questions that
    takes.
    """

    fewest: int
    most: int

    def num_questions(self, comparison: Comparison) -> int:
        """How many questions ``questions`` gives, without writing them."""
        ...

    def questions(self, comparison: Comparison) -> tuple[Question, ...]:
        """What the language model is asked of a comparison."""
        ...

    def read(self, comparison: Comparison, replies: Sequence[Reply]) -> Answer:
        """What the replies, one for each question and in their order, say. Never guesses."""
        ...

    def protocol(self) -> dict[str, Any]:
        """What must be equal for two judges' verdicts to be comparable: prompts, form of answer, orders."""
        ...


class Bench(Protocol):
    """A benchmark: how cases with rankings sum to its published headline.

    ``foreign`` names the format of its raw files, null where it has none. ``counts_halves``: its published scores of
    models that are asked count a tie or a failure as half a point. ``left_out`` counts, by cell, the prompts of its
    files that have no comparable pair.
    """

    foreign: str | None
    counts_halves: bool

    def subset_of(self, file_name: str) -> str | None:
        """The subset that a file's name tells, null where it tells none."""
        ...

    def prepared(self, case: Case, file_name: str) -> Case:
        """The case placed in its subset. Raises UserError for a case that the benchmark cannot hold."""
        ...

    def names_of(self, case: Case) -> tuple[str, ...]:
        """What the prompt is known by: cases that share one of these names are drawn together when resampling."""
        ...

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Any:
        """Whole numbers, none negative, that its headline needs beyond accuracy and exact match: (case, column)."""
        ...

    def breakdown(self, totals: Any, left_out: Mapping[Any, int] = {}) -> Any:
        """How totals of one language sum to sections and to the number over them: a `Breakdown`."""
        ...

    def headline(self, totals: Any, left_out: Mapping[Any, int] = {}) -> Any:
        """The one number by which models are ranked on it, or what keeps it away: a `Headline` of these totals."""
        ...

    def summarise(self, totals: Any, left_out: Mapping[Any, int] = {}) -> dict[str, Any]:
        """The bench's part of the evaluation summary, from totals by cell; ``headline`` names its headline in it."""
        ...


@runtime_checkable
class PairBench(Bench, Protocol):
    """A benchmark whose own columns can be formed from verdicts on pairs too, without a number for each response."""

    def pair_columns(self, cases: Sequence[Case], right: Sequence[Mapping[tuple[str, str], bool]]) -> Any:
        """As ``columns``, from which pairs of each case are right, by their better and worse response."""
        ...


class Engine(Protocol):
    """Maps a pure function over batches of serialised cases, here or on many machines."""

    def map(self, function: Callable[[Given], Returned], batches: Iterable[Given]) -> Iterator[Returned]:
        """One result a batch, in order. ``function`` must be importable by name: workers build what they need."""
        ...
