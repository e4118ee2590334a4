"""What the report reads of judges in the summary of `resolve`: typed, and tolerant of keys that are absent or new."""

import msgspec

from steelyard.report.summary_readers import Estimate, Seen


class Standing(Seen, frozen=True, kw_only=True):
    """Agreement of strict verdicts with a ranking, and the share of them on which it takes a side."""

    agreement: Estimate = Estimate()
    coverage: Estimate = Estimate()


class PlacedPair(Estimate, frozen=True, kw_only=True):
    """The share of strict verdicts for the earlier shown of two places, from 1."""

    num_shown: int | None = None
    earlier: int | None = None
    later: int | None = None


class Place(Estimate, frozen=True, kw_only=True):
    """The share of strict verdicts for the answer at one place."""

    num_shown: int
    place: int


class Bin(Estimate, frozen=True, kw_only=True):
    """The share of strict verdicts for the longer answer, by relative difference of the lengths."""

    above: float
    up_to: float


class Position(Seen, frozen=True, kw_only=True):
    """Position bias of one judge or kind."""

    earlier: Estimate = Estimate()
    pairs: tuple[PlacedPair, ...] = ()
    places: tuple[Place, ...] = ()


class Length(Seen, frozen=True, kw_only=True):
    """Length bias of one judge or kind."""

    longer: Estimate = Estimate()
    bins: tuple[Bin, ...] = ()
    num_equal: int = 0


class Rater(Seen, frozen=True, kw_only=True):
    """What was measured of one judge or kind."""

    num_judgments: int = 0
    conflict_ratio: Estimate = Estimate()
    ranking: Standing = Standing()
    others: Standing = Standing()
    position: Position = Position()
    length: Length = Length()


class Judges(Seen, frozen=True, kw_only=True):
    """The section ``judges`` of a run of ``resolve``."""

    by_judge: dict[str, Rater] = msgspec.field(default_factory=dict)
    by_kind: dict[str, Rater] = msgspec.field(default_factory=dict)


class Two(Seen, frozen=True, kw_only=True):
    """Agreement of two judges or kinds."""

    judges: tuple[str, str] = ("", "")
    kinds: tuple[str, str] = ("", "")
    agreement: Estimate = Estimate()
    agreement_of_strict: Estimate = Estimate()
    kappa: Estimate = Estimate()


class Alpha(Seen, frozen=True, kw_only=True):
    """Krippendorff's alpha."""

    all: Estimate = Estimate()
    by_kind: dict[str, Estimate] = msgspec.field(default_factory=dict)


class Agreement(Seen, frozen=True, kw_only=True):
    """The section ``agreement`` of a run of ``resolve``."""

    judges: tuple[Two, ...] = ()
    kinds: tuple[Two, ...] = ()
    alpha: Alpha = Alpha()


class Author(Estimate, frozen=True, kw_only=True):
    """The strength of one author."""

    author: str


class Authors(Seen, frozen=True, kw_only=True):
    """The section ``authors`` of a run of ``resolve``."""

    strengths: tuple[Author, ...] = ()
    is_regularised: bool = False
    num_verdicts: int = 0
