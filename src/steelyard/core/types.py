"""The records of a case file, its scores and a run: one frozen value for each noun, fields in the order written.

Every collection is a tuple and every value is frozen: raw evidence is never edited, a stage creates new values.
Absent optional keys mean null. Unknown keys are errors; fields of a foreign format are stored in the nearest ``meta``.
"""

from contextlib import suppress
from typing import Any, Generic, Literal, TypeVar

import msgspec

Verdict = Literal["left", "right", "tie", "none"]
Kind = Literal["human", "llm", "model"]
JsonObject = dict[str, Any]
"""A JSON object whose keys are defined elsewhere: by a server, a file format, the settings of a plug-in."""
Meta = JsonObject
UNKNOWN_JUDGE = "unknown"
"""The judge or rater where a file names none: not known to be one person."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """The base of every value written to disk: frozen, keyword-only, strict about its keys."""


def prepare_records() -> None:
    """Let msgspec describe every record that is imported, before threads read or write any.

    It describes a type when it first meets it, and two threads that do so at once can crash the process
    (msgspec 0.22: a segmentation fault in half of the tries). Code that starts threads which read records calls this.
    """
    known = msgspec.Struct.__subclasses__()
    for record in known:
        known += record.__subclasses__()
        # Another library's record may be one that msgspec cannot describe, and then nobody reads it.
        with suppress(Exception):
            msgspec.json.Decoder(record)


class Message(Record, frozen=True, kw_only=True):
    """One turn of a conversation. ``role`` is ``system``, ``user`` or ``assistant`` (tools keep their own names)."""

    role: str
    content: str


class Prompt(Record, frozen=True, kw_only=True):
    """The conversation up to the turn that the responses answer.

    ``category`` goes from the first tier down; empty means uncategorised. ``language`` is a BCP 47 or FLORES code.
    """

    id: str
    messages: tuple[Message, ...]
    language: str | None = None
    category: tuple[str, ...] = ()
    source: str | None = None
    subset: str | None = None
    reference: str | None = None
    meta: Meta | None = None


class Response(Record, frozen=True, kw_only=True):
    """One response: ``text``, or ``messages`` if it has several turns; never both."""

    id: str
    text: str | None = None
    messages: tuple[Message, ...] | None = None
    author: str | None = None
    meta: Meta | None = None


class Judgment(Record, frozen=True, kw_only=True):
    """One verdict on two responses. Raw evidence: it may contradict others and is never edited.

    ``none`` means unparsed, refused or failed (``reason`` says which); it is counted, never guessed.
    ``shown`` lists the response ids in the order in which the judge saw them; null if unknown.
    """

    left: str
    right: str
    verdict: Verdict
    judge: str
    kind: Kind
    id: str | None = None
    task: str | None = None
    shown: tuple[str, ...] | None = None
    batch: str | None = None
    reason: str | None = None
    meta: Meta | None = None


class Rating(Record, frozen=True, kw_only=True):
    """A rater's number for one response. ``range`` is (lowest, highest) of the scale.

    A span is ``(start, end, label, reason)``, counted in Unicode code points of the raw text.
    """

    response: str
    rater: str
    kind: Kind
    dimension: str
    value: float
    range: tuple[float, float] | None = None
    id: str | None = None
    task: str | None = None
    spans: tuple[tuple[int, int, str, str | None], ...] | None = None
    meta: Meta | None = None


class Pair(Record, frozen=True, kw_only=True):
    """An explicit training or test pair, where tiers do not suffice: with a weight or margin, or left by debiasing."""

    better: str
    worse: str
    weight: float | None = None
    margin: float | None = None


Ranking = tuple[tuple[str, ...], ...]
"""Tiers, best first. Two ids in one tier are not ordered: judged equal, in one cycle, or never compared."""


class Case(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One prompt with its responses and evidence: a line of a case file. Every top-level key is always written."""

    format: Literal[1] = 1
    prompt: Prompt
    responses: tuple[Response, ...]
    judgments: tuple[Judgment, ...] = ()
    ratings: tuple[Rating, ...] = ()
    ranking: Ranking | None = None
    pairs: tuple[Pair, ...] | None = None
    meta: Meta = {}

    @property
    def key(self) -> tuple[str, str | None]:
        """Return the identity of the case: parallel items in several languages share ``prompt.id``."""
        return (self.prompt.id, self.prompt.language)


OverLength = Literal["unscored", "left", "right", "refuse"]
"""The rule for responses over a model's length limit, in training, scoring and evaluation.

``unscored``: no score, and its pairs are left out of training, both counted; ``left`` and ``right``: truncated on that
side, counted; ``refuse``: the command stops.
"""


class Scores(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The scores of one case: a line of ``scores.jsonl``. A null score has its reason in ``unscored``.

    ``cut``: the responses that were truncated to the model's length limit; their scores count. ``hashes``: of the texts
    that were scored, the prompt with each response (`text_hashes`); empty in files of other tools.
    """

    prompt: str
    language: str | None = None
    scores: dict[str, float | None]
    unscored: dict[str, str] = {}
    cut: tuple[str, ...] = ()
    hashes: dict[str, str] = {}


class Counts(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Numbers of items read, used, and dropped by each rule. ``noted`` counts observations without dropping."""

    num_in: int = 0
    num_used: int = 0
    dropped: dict[str, int] = {}
    noted: dict[str, int] = {}

    def __post_init__(self) -> None:
        total = self.num_used + sum(self.dropped.values())
        assert self.num_in == total, f"{self.num_in} in, but {self.num_used} used and {self.dropped} dropped"


class InputFinding(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A property of the input that makes a number weaker or other than it looks: a sentence for the reader.

    ``check`` names the rule (``report/templates/sections/findings.toml`` has its sentence), ``count`` of ``total``
    items have the property. ``details`` are further values of the sentence, ``examples`` ids of the first items.
    """

    check: str
    count: int
    total: int
    details: dict[str, str] = {}
    examples: tuple[str, ...] = ()


class Input(Record, frozen=True, kw_only=True):
    """An input file of a run: its path, and the hash of its content."""

    path: str
    sha256: str


SummaryT = TypeVar("SummaryT")


class Run(Record, Generic[SummaryT], frozen=True, kw_only=True, omit_defaults=False):
    """The record of one stage, written last: ``run.json`` exists only if the stage finished.

    ``Run[ResolveSummary]`` decodes the summary of a known stage; ``Run[Meta]`` leaves it a dictionary. ``datasets`` are
    the names on the Hugging Face Hub of the data sets that the cases come from, as far as they are known. ``findings``
    are the checks of the input that a reader of the numbers should know.
    """

    stage: str
    config: Meta
    seed: int | None = None
    inputs: dict[str, Input] = {}
    outputs: dict[str, str] = {}
    versions: dict[str, str] = {}
    counts: Counts = Counts()
    datasets: tuple[str, ...] = ()
    findings: tuple[InputFinding, ...] = ()
    summary: SummaryT = {}  # pyrefly: ignore[bad-assignment] - a stage without a summary has an empty one
    seconds: float = 0.0
