"""Self-tests of a reward model before its scores are used: the protocols it offers and the record of a result."""

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol, runtime_checkable

import msgspec

from steelyard.core.protocols import RewardModel
from steelyard.core.types import Case, Meta, OverLength, Record

State = Literal["passed", "failed", "not applicable"]


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
