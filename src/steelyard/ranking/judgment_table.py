"""Judgments of many cases as integer columns, and the preference graphs that they make.

`judgment_table` turns cases into a `JudgmentTable`; `edges_of` turns its `Verdicts` into `Edges`, from better to worse.
"""

import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.core.config import Config
from steelyard.core.errors import ConfigError, EvidenceError, choices, listed
from steelyard.core.numerics import Integers
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import UNKNOWN_JUDGE, Case, Judgment, Kind, Meta, Ranking
from steelyard.statistics.agreement import count_labels, orient_labels, vote
from steelyard.statistics.groups import UNCATEGORISED

Aggregate = Literal["none", "majority"]
"""Combination of several verdicts on one pair of a graph: not at all, or by a vote."""

LEFT, RIGHT, TIE, NONE = range(4)
_CODES = {"left": LEFT, "right": RIGHT, "tie": TIE, "none": NONE}
REVERSED = {"left": "right", "right": "left", "tie": "tie", "none": "none"}

NO_LANGUAGE = "unspecified"
REPEATED = "judgments that repeat an identical one"
"""The name in ``run.json`` of the judgments that `first_identical` leaves out."""
_OF_OCCASION = re.compile(r"label|(?:.*_)?(?:id|at|time|timestamp|tstamp|date|seconds|duration)")
"""Entries of ``meta`` that tell when and under which number a person's verdict was stored, and how it was written."""


class Only(Config, frozen=True):
    """Which judgments count. A key lists the values that it admits; an empty key admits all. Every key must agree."""

    kind: tuple[Kind, ...] = ()
    """The kinds of judges whose judgments count; empty for all."""
    judge: tuple[str, ...] = ()
    """The judges whose judgments count; empty for all."""
    batch: tuple[str, ...] = ()
    """The batches whose judgments count; empty for all."""
    evidence: tuple[Literal["aligned"], ...] = ()
    """``aligned``: without first answers to tasks that people aligned or settled later; empty for all."""

    @property
    def admits_all(self) -> bool:
        """True where nothing is left out."""
        return not (self.kind or self.judge or self.batch or self.evidence)

    def admits(self, judgments: Sequence[Judgment]) -> list[bool]:
        """Return for each judgment of a case whether every key admits it."""
        stands = standing(judgments) if self.evidence else [True] * len(judgments)
        return [
            counts
            and (not self.kind or judgment.kind in self.kind)
            and (not self.judge or judgment.judge in self.judge)
            and (not self.batch or judgment.batch in self.batch)
            for judgment, counts in zip(judgments, stands, strict=True)
        ]

    def votes(self, judgments: Sequence[Judgment]) -> list[bool]:
        """Return for each judgment of a case whether it counts: it is admitted, and the first of identical ones."""
        first = enumerate(first_identical(judgments))
        return [admitted and place == at for admitted, (place, at) in zip(self.admits(judgments), first, strict=True)]


EVERYTHING = Only()


def first_identical(judgments: Sequence[Judgment]) -> Sequence[int]:
    """Return for each judgment of a case the position of the first that is identical to it, its own for most.

    Identical judgments are equal in every field, left and right exchanged or not: a row that a file repeats adds no
    vote. Another id, order shown, reason or entry of ``meta`` makes another judgment, such as a model's second
    sample. Of a person, who was stored twice, the entries that match `_OF_OCCASION` do not, nor those below ``row``.
    Judgments of `UNKNOWN_JUDGE` may be those of several people: they are never identical.
    """
    sorted_ends = [each.left < each.right for each in judgments]
    pairs = {
        (each.judge, each.left, each.right) if is_sorted else (each.judge, each.right, each.left)
        for each, is_sorted in zip(judgments, sorted_ends, strict=True)
    }
    if len(pairs) == len(judgments):
        return range(len(judgments))  # most cases: no judge has two verdicts on a pair
    first: dict[bytes, int] = {}
    return [
        position
        if each.judge == UNKNOWN_JUDGE
        else first.setdefault(
            msgspec.json.encode(_content(each if is_sorted else _exchanged(each)), order="sorted"), position
        )
        for position, (each, is_sorted) in enumerate(zip(judgments, sorted_ends, strict=True))
    ]


def _content(judgment: Judgment) -> Judgment:
    """Return a judgment without the occasion on which a person's verdict was stored."""
    if judgment.kind != "human" or not judgment.meta:
        return judgment
    meta: Meta = {}
    for key, item in judgment.meta.items():
        # The cells of a row that its prompt does not share.
        cells = {key: item} if key != "row" or not isinstance(item, dict) else item
        meta |= {name: cell for name, cell in cells.items() if not _OF_OCCASION.fullmatch(name)}
    return msgspec.structs.replace(judgment, meta=meta or None)


def _exchanged(judgment: Judgment) -> Judgment:
    return msgspec.structs.replace(
        judgment, left=judgment.right, right=judgment.left, verdict=REVERSED[judgment.verdict]
    )


def distinct_judgments(judgments: Sequence[Judgment]) -> Sequence[Judgment]:
    """Return the judgments of a case, each of several identical ones once."""
    return [judgments[at] for position, at in enumerate(first_identical(judgments)) if position == at]


def standing(judgments: Sequence[Judgment]) -> list[bool]:
    """Return for each judgment of a case whether it stands: of a task that was settled later, only the last stage does.

    ``meta.stage`` and the name of the task tell it, as exports of the workbench have them. Others stand.
    """
    stages = [judgment.meta.get("stage") if judgment.meta else None for judgment in judgments]
    if len({*map(str, stages)}) < 2:
        return [True] * len(stages)
    tasks = [str(judgment.task).removesuffix(f"-{stage}") for judgment, stage in zip(judgments, stages, strict=True)]
    last: dict[str, object] = {}
    for task, stage in zip(tasks, stages, strict=True):
        if stage is not None and (stage != "annotation" or task not in last):
            last[task] = stage
    return [stage is None or last[task] == stage for task, stage in zip(tasks, stages, strict=True)]


def parse_only(assignments: Iterable[str]) -> dict[str, list[str]]:
    """Parse ``["kind=human", "judge=ann"]`` into the settings of an `Only`. Raises ConfigError for an unknown key."""
    settings: dict[str, list[str]] = {}
    for assignment in assignments:
        if not isinstance(assignment, str):
            problem = f"only has an item of type {type(assignment).__name__}"
            raise ConfigError(problem, allowed="texts, such as kind=human")
        key, equals, name = assignment.partition("=")
        if key not in Only.__struct_fields__:
            raise ConfigError(f"only {assignment!r}: unknown key {key!r}", allowed=choices(key, Only.__struct_fields__))
        if not equals or not name:
            raise ConfigError(
                f"only {assignment!r} names no {key}", do=Advice("write ", Remedy("only", (f"{key}=NAME",)))
            )
        settings.setdefault(key, []).append(name)
    return settings


def check_admits(only: Only, cases: Iterable[Case], *, where: str) -> None:
    """Check that ``only`` admits a judgment. Raises EvidenceError with the available names if it admits none.

    The cases are consumed up to the first judgment that is admitted.
    """
    required = {key: names for key, names in msgspec.structs.asdict(only).items() if names}
    present: dict[str, set[str]] = {key: set() for key in required}
    for case in cases:
        if any(only.admits(case.judgments)):
            return
        for judgment in case.judgments:
            values = {"kind": judgment.kind, "judge": judgment.judge, "batch": judgment.batch, "evidence": "aligned"}
            for key, names in present.items():
                name = values[key]
                if name is not None:
                    names.add(name)
    if required:
        raise EvidenceError(
            "only "
            + " ".join(f"{key}={name}" for key, names in required.items() for name in names)
            + " admits no judgment",
            where=where,
            allowed="; ".join(
                f"{key}: {listed(sorted(names)) or 'the file has none'}" for key, names in present.items()
            ),
        )


class Verdicts(NamedTuple):
    """One entry a judgment. ``left`` and ``right`` are positions among the responses of the entry's graph."""

    graph: Integers
    left: Integers
    right: Integers
    verdict: Integers

    @property
    def is_strict(self) -> NDArray[np.bool_]:
        """Return which entries prefer one response."""
        return self.verdict < TIE

    @property
    def better(self) -> Integers:
        """Return the preferred position of each strict entry; undefined for the others."""
        return np.where(self.verdict == RIGHT, self.right, self.left)

    @property
    def worse(self) -> Integers:
        """Return the other position of each strict entry; undefined for the others."""
        return np.where(self.verdict == RIGHT, self.left, self.right)

    def pair_keys(self, width: int) -> Integers:
        """Return one number for each entry's pair, the same in both orders; ``width`` is above every position.

        It is (graph x width + lower position) x width + higher position, so that numbers sort like these.
        """
        low, high = np.minimum(self.left, self.right), np.maximum(self.left, self.right)
        return (self.graph.astype(np.int64) * width + low) * width + high

    def where(self, mask: NDArray[np.bool_]) -> "Verdicts":
        """Return the entries for which the mask is true."""
        return Verdicts(*(column[mask] for column in self))


class Edges(NamedTuple):
    """One entry an edge, pointing from the better response to the worse; repeated edges are allowed."""

    graph: Integers
    better: Integers
    worse: Integers


class CaseOutline(NamedTuple):
    """The facts of a case that resolving needs besides its judgments."""

    responses: tuple[str, ...]
    category: str
    subset: str | None
    language: str
    ranking: Ranking | None
    has_pairs: bool
    num_overruled: int
    """The judgments that count although their task was settled later."""
    num_repeated: int
    """The judgments that do not count because an identical one does."""


class JudgmentTable(NamedTuple):
    """The admitted judgments of a sequence of cases, each of several identical ones once (`first_identical`).

    ``verdicts.graph`` is the case's position in the sequence.

    ``judge`` and ``kind`` give for each judgment a position in ``judges`` and ``kinds``; ``num_responses`` has an entry
    a case.
    """

    cases: tuple[CaseOutline, ...]
    verdicts: Verdicts
    judge: Integers
    kind: Integers
    judges: tuple[str, ...]
    kinds: tuple[str, ...]
    num_responses: Integers

    @property
    def first_response(self) -> Integers:
        """Return the position of each case's first response among the responses of all cases."""
        return np.cumsum(self.num_responses) - self.num_responses


CaseVisitor = Callable[[Case, dict[str, int], Sequence[Judgment]], None]
"""Called with each case, its responses' positions by id, and its admitted judgments."""


class NameNumbers(dict[str, int]):
    """Consecutive numbers for names, in the order of first use. A known name costs one look-up."""

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number

    def sorted(self, numbers: Iterable[int]) -> tuple[tuple[str, ...], Integers]:
        """Return the names in sorted order, and the numbers as positions in it."""
        names = tuple(sorted(self))
        position = np.empty(len(names), np.int64)
        position[[self[name] for name in names]] = np.arange(len(names))
        return names, position[integers(numbers)]


def integers(numbers: Iterable[int]) -> Integers:
    """Return the numbers as an array. Twice as fast as ``np.array``, which inspects the elements of a list."""
    return np.array(array("i", numbers), np.int64)


def judgment_table(cases: Iterable[Case], only: Only = EVERYTHING, visit: CaseVisitor | None = None) -> JudgmentTable:
    """Collect the admitted judgments of checked cases, in order.

    The cases are consumed one by one and not retained: an iterator of them needs memory for one. ``visit`` is called
    with each case on the way. Raises KeyError for a judgment on an unknown response.
    """
    outlines: list[CaseOutline] = []
    counts: list[int] = []
    # Only small integers are retained: strings that stayed alive would slow the decoding of the next line.
    left: list[int] = []
    right: list[int] = []
    verdict: list[int] = []
    judge: list[int] = []
    kind: list[int] = []
    judges, kinds = NameNumbers(), NameNumbers()
    for case in cases:
        admitted = case.judgments if only.admits_all else tuple(compress(case.judgments, only.admits(case.judgments)))
        num_admitted, admitted = len(admitted), distinct_judgments(admitted)
        outline = CaseOutline(
            tuple([response.id for response in case.responses]),
            case.prompt.category[0] if case.prompt.category else UNCATEGORISED,
            case.prompt.subset,
            case.prompt.language or NO_LANGUAGE,
            case.ranking,
            case.pairs is not None,
            standing(admitted).count(False) if any(judgment.meta for judgment in admitted) else 0,
            num_admitted - len(admitted),
        )
        outlines.append(outline)
        position = dict(zip(outline.responses, range(len(outline.responses)), strict=True))
        counts.append(len(admitted))
        left += [position[judgment.left] for judgment in admitted]
        right += [position[judgment.right] for judgment in admitted]
        verdict += [_CODES[judgment.verdict] for judgment in admitted]
        judge += [judges[judgment.judge] for judgment in admitted]
        kind += [kinds[judgment.kind] for judgment in admitted]
        if visit is not None:
            visit(case, position, admitted)
    graph = np.repeat(np.arange(len(counts)), counts)
    verdicts = Verdicts(graph, *map(integers, (left, right, verdict)))
    judge_names, judge_code = judges.sorted(judge)
    kind_names, kind_code = kinds.sorted(kind)
    num_responses = np.array([len(outline.responses) for outline in outlines], np.int64)
    return JudgmentTable(tuple(outlines), verdicts, judge_code, kind_code, judge_names, kind_names, num_responses)


def edges_of(verdicts: Verdicts, aggregate: Aggregate = "none") -> Edges:
    """Return the edges of the verdicts (CHEEMS, algorithm 1, lines 4 to 20).

    A tie gives an edge both ways, ``none`` gives no edge. ``majority`` first lets the verdicts on each pair of a graph
    vote (`majority`), so that a pair has one verdict.
    """
    readable = verdicts.where(verdicts.verdict != NONE)
    if aggregate == "majority":
        readable = majority(readable)
    # A tie is both: it has an edge down (left over right) and an edge up.
    down, up = readable.verdict != RIGHT, readable.verdict != LEFT
    return Edges(
        np.concatenate([readable.graph[down], readable.graph[up]]),
        np.concatenate([readable.left[down], readable.right[up]]),
        np.concatenate([readable.right[down], readable.left[up]]),
    )


def majority(verdicts: Verdicts) -> Verdicts:
    """Return one verdict a compared pair: the option (one response, the other, tie) with strictly most votes, else tie.

    The caller removes ``none`` verdicts first: they do not vote. ``left`` is the lower position in the result, whose
    pairs are sorted by graph and positions.
    """
    pairs, width, votes = _votes(verdicts)
    return Verdicts(pairs // width**2, pairs // width % width, pairs % width, vote(votes))


def num_split_votes(verdicts: Verdicts) -> int:
    """Count the compared pairs whose vote has no single leading option: `majority` makes them ties."""
    _, _, votes = _votes(verdicts.where(verdicts.verdict != NONE))
    is_leading = votes == votes.max(axis=1, keepdims=True)
    return int((is_leading.sum(axis=1) > 1).sum())


def _votes(verdicts: Verdicts) -> tuple[Integers, int, Integers]:
    """Return the keys of the compared pairs, the width of the keys, and the votes (pair, 3) for low, high and tie."""
    width = int(max(verdicts.left.max(initial=0), verdicts.right.max(initial=0))) + 1
    pairs, pair = np.unique(verdicts.pair_keys(width), return_inverse=True)
    return pairs, width, count_labels(pair, orient_labels(*verdicts[1:]), len(pairs))
