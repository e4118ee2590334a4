"""The interfaces of the plug-in packages.

A plug-in is a file with ``Config`` and ``build``; ``build`` returns an object that satisfies its package's protocol.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import msgspec

from steelyard.core.comparison import Answer, Comparison, Question, Reply, Request
from steelyard.core.errors import Place, RecordError
from steelyard.core.types import Case, JsonObject, Meta, OverLength, Record, Scores

BatchType = TypeVar("BatchType")
ResultType = TypeVar("ResultType")
State = Literal["passed", "failed", "not applicable"]
_ARABIC_DECIMAL_SIGN = "\u066b"
_DECIMAL_COMMA = re.compile(r"[-+]?(?:0+,\d+|\d+,\d{1,2}|\d+,\d{4,}|\d{4,},\d+)")
"""Not ``1,234``, which may be a thousand: the comma of other numbers can only be a decimal one."""


def is_number(value: Any) -> bool:
    """Return whether a foreign value is a finite number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def parse_number(text: str) -> float | None:
    """Return the finite number that a text states, in the digits and with the decimal sign of any script; else null."""
    text = unicodedata.normalize("NFKC", text).strip().replace(_ARABIC_DECIMAL_SIGN, ".")
    try:
        value = float(text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


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
        """Return the number under the key, also of a text; null for none and for an empty cell.

        A text may have the digits of any script, and a decimal comma where it cannot divide thousands. Raises
        RecordError for any other value.
        """
        value = self.value.get(key)
        if value is None or is_number(value):
            return value
        text = value.strip() if isinstance(value, str) else None
        number = None if text is None else parse_number(text)
        if number is None and text != "":
            unsigned = "" if text is None else text.lstrip("+-").replace(",", "")
            is_either = text is not None and "," in text and unsigned.isdecimal()
            do = f"write it with a point, or as thousands without a mark: {unsigned}" if is_either else None
            raise RecordError(f"{value!r} is not a number", where=self.at(key), allowed="a number, or null", do=do)
        return number

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
    """A foreign data format. Pure: converts rows to cases, and cases to rows where it ``is_written``.

    ``keys`` are the row keys of the format; every other key is stored in the prompt's ``meta`` and written back.
    ``supports`` names the parts of a case that a row holds; every other part is counted when it is not written.
    ``has_evidence_rows`` says that a row is one judgment, rating or answer: a conversion joins the rows of one prompt.
    """

    keys: tuple[str, ...]
    supports: frozenset[str]
    has_evidence_rows: bool
    is_written: bool

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row may have this format. Of several that match, the one that uses most keys wins."""
        ...

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Convert rows to cases. Repeated ids and what a case cannot hold are counted by name in ``warnings``.

        Raises RecordError with the row's place for a row of another format.
        """
        ...


class WrittenFormat(Format, Protocol):
    """A format that trainers and annotation tools read: cases are written as its rows."""

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Convert cases to rows. What the format cannot hold is counted by name in ``dropped``."""
        ...


@runtime_checkable
class RewardModel(Protocol):
    """Score responses: a classifier, a policy with its reference, a length baseline."""

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """Yield one Scores per case, in order. A response without a score is null with its reason."""
        ...

    def protocol(self) -> JsonObject:
        """Return what two comparable scores must share: hashes of data and template, length limit, number type."""
        ...


@runtime_checkable
class FormulaModel(RewardModel, Protocol):
    """A reward model that is a formula of each case: its values need no Scores record."""

    @property
    def values(self) -> Callable[[Case], Sequence[float]]:
        """Return the formula: a finite number for each response of a case, in order."""
        ...


@runtime_checkable
class TrainableModel(RewardModel, Protocol):
    """A reward model that learns from training cases, quickly enough to be fitted many times in one run."""

    def fit(self, cases: Sequence[Case]) -> "TrainableModel":
        """Return the model with these training cases instead; a prompt is scored by a fit without that prompt."""
        ...


@runtime_checkable
class JudgeModel(RewardModel, Protocol):
    """A reward model that returns verdicts: its scores are only a summary of what it says about pairs.

    ``name`` signs the combined verdict of its judges; ``compares_pairs``: it accepts single pairs.
    """

    name: str
    compares_pairs: bool

    def answers(
        self, cases: Sequence[Case], pairs: Sequence[Sequence[tuple[int, int]]] | None = None
    ) -> Iterator[tuple[Mapping[str, Answer], ...]]:
        """For each case and comparison, yield every judge's answer by its name; the last is the combined one.

        ``pairs``: for each case, the positions of the responses to compare, where pairs are compared; null for all.
        """
        ...


class SelfTest(Record, frozen=True, kw_only=True):
    """The result of one self-test. ``remark``: why it failed, does not apply, or passed with doubt.

    ``figures`` hold the measured values and their bounds; ``do`` is the remedy of a failed test.
    """

    name: str
    state: State
    figures: Meta = msgspec.field(default_factory=dict)
    remark: str | None = None
    do: str | None = None

    @property
    def is_doubtful(self) -> bool:
        """Return whether the test passed with a remark that a person should read."""
        return self.state == "passed" and self.remark is not None


@runtime_checkable
class SelfTested(RewardModel, Protocol):
    """A reward model that exposes its tokens and its head to tests."""

    def self_tests(self, cases: Sequence[Case]) -> Iterator[SelfTest]:
        """Run the model's own tests on these cases: first tokens, last token, head, attention kernels."""
        ...

    def lengths(self, case: Case) -> list[int]:
        """Return the number of tokens of each response with its prompt, before any cut."""
        ...

    @property
    def max_length(self) -> int:
        """Return the largest number of tokens that the model reads."""
        ...

    @property
    def over_length(self) -> OverLength:
        """Return the rule for longer responses."""
        ...


@runtime_checkable
class ComparesAnswers(Protocol):
    """A reward model whose score of a response may depend on the case's other responses, or on their order."""

    compares_answers: bool


class Chat(Protocol):
    """A language model that replies to requests. ``name`` signs its verdicts."""

    name: str

    def ask(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Yield one reply per request, as they arrive, in any order; requests are consumed as capacity allows.

        A failed request yields a reply with its failure. Raises ModelError where no request can succeed.
        """
        ...

    def protocol(self) -> JsonObject:
        """Return what determines the replies: model, temperature, template; not timeouts and retries."""
        ...


@runtime_checkable
class BatchChat(Chat, Protocol):
    """A chat whose requests can also be written to a file, for a service that answers it as a whole."""

    def batch_request(self, request: Request) -> tuple[str, JsonObject]:
        """Return the path of the endpoint and the body of a request: the very body that `ask` sends."""
        ...

    def batch_reply(self, request: Request, status: int, body: Any) -> Reply:
        """Return the reply that a response is: its HTTP status and its decoded body, read as `ask` reads them."""
        ...


@runtime_checkable
class SlotChat(Chat, Protocol):
    """A chat whose server may have slots: each has cached the prompt that it answered last, and no other."""

    def num_slots(self) -> int | None:
        """Return the number of slots, and ask no more than that many requests at a time; null without slots."""
        ...


@runtime_checkable
class TranslationEngine(Chat, Protocol):
    """A chat that translates the last message of a question between its ``languages``, and reads no instructions."""

    def check_languages(self, source: str, target: str) -> None:
        """Raise ConfigError for a language, or a pair of them, that the engine does not translate."""
        ...


class Judge(Protocol):
    """A judging style. Pure: turns comparisons into questions for a language model and its replies into verdicts.

    ``fewest`` and ``most`` bound the number of responses in one comparison.
    """

    fewest: int
    most: int

    def num_questions(self, comparison: Comparison) -> int:
        """Return the number of questions for a comparison without rendering them."""
        ...

    def questions(self, comparison: Comparison) -> tuple[Question, ...]:
        """Return the questions that a comparison takes."""
        ...

    def read(self, comparison: Comparison, replies: Sequence[Reply]) -> Answer:
        """Parse the replies, one per question in the same order, into an answer. Never guesses."""
        ...

    def marked(self, comparison: Comparison) -> tuple[str, ...]:
        """Return the ids of the responses that hold a verdict in the form of the questions, which a judge may quote."""
        ...

    def protocol(self) -> JsonObject:
        """Return what comparable verdicts must share: prompts, answer format, orders of presentation."""
        ...


class Bench(Protocol):
    """A benchmark: how results on cases with rankings combine into its published headline.

    ``source_format`` names the format of its raw files, or is null. ``counts_halves``: its published scores of judges
    count a tie or a failure as half a point. ``counts_unwinnable``: its published arithmetic counts pairs of equal
    texts as others. ``left_out`` counts, by cell, the prompts without a comparable pair.
    ``pair_columns`` computes ``columns`` from the correctness of each case's pairs, keyed by better and worse response;
    it is null where a score for each response is needed.
    """

    source_format: str | None
    counts_halves: bool
    counts_unwinnable: bool
    pair_columns: Callable[[Sequence[Case], Sequence[Mapping[tuple[str, str], bool]]], Any] | None

    def subset_of(self, file_name: str) -> str | None:
        """Return the subset that a file name implies, or null."""
        ...

    def normalize(self, case: Case, file_name: str) -> Case:
        """Return the case with its subset. Raises UserError for a case that does not belong to the benchmark."""
        ...

    def resample_ids(self, case: Case) -> tuple[str, ...]:
        """Return the prompt's ids for resampling: cases that share one of them are drawn together."""
        ...

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Any:
        """Return the counts that its headline needs beyond accuracy and exact match: integers >= 0, (case, column)."""
        ...

    def breakdown(self, totals: Any, left_out: Mapping[Any, int] = {}) -> Any:
        """Combine the totals of one language into sections and their overall value: a `Breakdown`."""
        ...

    def headline(self, totals: Any, left_out: Mapping[Any, int] = {}) -> Any:
        """Return the number that ranks models on this benchmark, or why it is missing: a `Headline` of these totals."""
        ...

    def summarise(self, totals: Any, left_out: Mapping[Any, int] = {}) -> JsonObject:
        """Return the benchmark's part of the evaluation summary, from totals by cell, with its ``headline``."""
        ...


class Engine(Protocol):
    """Map a pure function over batches of serialised cases, on this machine or a cluster."""

    def map(self, function: Callable[[BatchType], ResultType], batches: Iterable[BatchType]) -> Iterator[ResultType]:
        """Yield one result per batch, in order. ``function`` must be importable by name; workers build its parts."""
        ...
