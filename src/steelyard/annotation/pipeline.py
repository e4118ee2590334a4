"""The states of an item under annotation and the only ways between them (CHEEMS, appendix D.1).

Two people annotate an item without seeing each other's answers. If they agree enough it goes to review; otherwise they
align, and what they cannot settle climbs from delivery over operations to the developers. Review cascades: a share is
checked by delivery, another by operations, and researchers validate. A rejection sends an item back to annotation, in a
new round.
"""

from typing import Literal, NamedTuple, get_args

from steelyard.core.config import Config
from steelyard.core.errors import ConfigError
from steelyard.core.types import JsonObject

ItemState = Literal[
    "annotating",
    "aligning",
    "with delivery",
    "with operations",
    "with developers",
    "delivery review",
    "operations review",
    "validation",
    "finished",
    "dropped",
]
ItemEvent = Literal[
    "agreed",
    "disagreed",
    "uncompared",
    "settled",
    "unresolved",
    "replanned",
    "accepted",
    "not drawn",
    "rejected",
    "dropped",
]
"""Events of an item. ``uncompared``: each of its tasks has one answer, and there is nothing to agree on;
``replanned``: people took a response out while they aligned, and further tasks are to be
answered; ``not drawn``: it is not among those that a layer checks."""
Layer = Literal["delivery", "operations", "research"]
LAYERS: tuple[Layer, ...] = get_args(Layer)
GateUnit = Literal["item", "batch", "pair of people"]
Rework = Literal["anyone", "others", "same people"]
TwoLeft = Literal["compare", "drop"]

TRANSITIONS: dict[tuple[ItemState, ItemEvent], ItemState] = {
    ("annotating", "agreed"): "delivery review",
    ("annotating", "disagreed"): "aligning",
    ("annotating", "uncompared"): "delivery review",
    ("aligning", "settled"): "delivery review",
    ("aligning", "unresolved"): "with delivery",
    ("with delivery", "settled"): "delivery review",
    ("with delivery", "unresolved"): "with operations",
    ("with operations", "settled"): "delivery review",
    ("with operations", "unresolved"): "with developers",
    ("with developers", "settled"): "delivery review",
    ("aligning", "replanned"): "annotating",
    ("with delivery", "replanned"): "annotating",
    ("with operations", "replanned"): "annotating",
    ("with developers", "replanned"): "annotating",
    ("delivery review", "accepted"): "operations review",
    ("delivery review", "not drawn"): "operations review",
    ("operations review", "accepted"): "validation",
    ("operations review", "not drawn"): "validation",
    ("validation", "accepted"): "finished",
    ("validation", "not drawn"): "finished",
    # Each stage's work is reviewed by those after it: what was approved can be rejected later, too.
    ("delivery review", "rejected"): "annotating",
    ("operations review", "rejected"): "annotating",
    ("validation", "rejected"): "annotating",
    ("finished", "rejected"): "annotating",
}
for _state in get_args(ItemState):
    if _state not in ("finished", "dropped"):
        TRANSITIONS[_state, "dropped"] = "dropped"
"""The state after an event, by the state before and the event; what is not listed cannot happen."""
REVIEWED_BY: dict[ItemState, Layer] = {
    "delivery review": "delivery",
    "operations review": "operations",
    "validation": "research",
}
SETTLED_BY: dict[ItemState, Layer] = {
    "with delivery": "delivery",
    "with operations": "operations",
    "with developers": "research",
}
"""The layer in whose queue an item waits, for a review or for a decision that the annotators could not reach."""


_MOST_ANNOTATORS = 1000
_LONGEST_LOCK = 7 * 24 * 60


class PipelineRules(Config, frozen=True):
    """The rules by which items of a project move."""

    num_annotators: int = 2
    """People who annotate each task, none seeing the others' answers."""
    least_agreement: float = 0.9
    """The share of pairs on which they must agree for an item to pass the gate."""
    gate: GateUnit = "item"
    """Over what the agreement is taken: each item, all of its batch, or all items of the same two people."""
    delivery_share: float = 0.3
    """The share of a batch that delivery reviews."""
    operations_share: float = 0.3
    """The share of a batch that operations reviews, drawn independently of the first."""
    validation: bool = True
    """Let researchers validate each batch before its items are finished."""
    gold_share: float = 0.1
    """The share of a person's tasks whose answer is known."""
    review_gold_share: float = 0.1
    """The share of a layer's reviews whose right decision is known."""
    lock_minutes: float = 45.0
    """Minutes after which a task that was not answered goes to another person."""
    rework: Rework = "anyone"
    """Annotators of an item after a rejection: anyone, new people first; only others; only the same people."""
    two_left: TwoLeft = "compare"
    """Treatment of an item when all responses but two were discarded: they are compared, or the item is dropped."""

    def __post_init__(self) -> None:
        for name in ("least_agreement", "delivery_share", "operations_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{getattr(self, name)} is no share", where=name, allowed="0 to 1")
        for name, every in (("gold_share", "tasks"), ("review_gold_share", "reviews")):
            if not 0 <= getattr(self, name) <= 0.5:
                raise ConfigError(f"{getattr(self, name)} of all {every}", where=name, allowed="0 to 0.5")
        if not 1 <= self.num_annotators <= _MOST_ANNOTATORS:
            allowed = f"1 to {_MOST_ANNOTATORS}"
            raise ConfigError(f"{self.num_annotators} people", where="num_annotators", allowed=allowed)
        if not 0 < self.lock_minutes <= _LONGEST_LOCK:
            allowed = f"more than 0, at most {_LONGEST_LOCK} (a week)"
            raise ConfigError(f"{self.lock_minutes} minutes", where="lock_minutes", allowed=allowed)


WITHOUT_REVIEW: JsonObject = {"delivery_share": 0.0, "operations_share": 0.0, "validation": False}
"""Rules of a team without reviewers: an item is finished once its annotators agree, at the gate or in alignment."""


class ItemStep(NamedTuple):
    """Where an item stands after an event: its state and round. A rejection begins a new round."""

    state: ItemState
    round: int


class TransitionRefused(Exception):  # noqa: N818 - an answer to who came too late, not a fault
    """An event that cannot happen in the state of an item: another person was faster."""


def advance(state: ItemState, event: ItemEvent, *, round: int = 1) -> ItemStep:  # noqa: A002 - the noun of the pipeline
    """Return where an item stands after an event. Raises TransitionRefused for one that the state does not allow."""
    following = TRANSITIONS.get((state, event))
    if following is None:
        raise TransitionRefused(f"an item that is {state!r} cannot be {event!r}")
    return ItemStep(following, round + (event == "rejected"))
