"""A language model that is asked: its verdicts on pairs, its best of four, or its ratings, alone or as a panel."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import msgspec

from steelyard.core.comparison import Answer, Comparison
from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Case, Meta, Scores
from steelyard.io.ledger import open_ledger
from steelyard.judging.asking import answers_of, ask_panel
from steelyard.judging.panel import JudgePanel, PanelMember
from steelyard.judging.planning import plan_comparisons, refusal_reason
from steelyard.judging.verdicts import shares_won

_CASES_AT_A_TIME = 64


class Config(BaseConfig, frozen=True):
    """``chat`` has the chat's ``kind`` and settings, ``judge`` the style and settings of the way of asking.

    ``compare``: every pair in both orders, the ``best`` of two to four answers, or ``ratings`` from 1 to 10. ``judges``
    are the members of a panel, each with its ``chat`` and ``judge``. The score of an answer is its rating, or the share
    of its comparisons that it won, a tie counting half.
    """

    compare: Literal["pairs", "best", "ratings"] = "pairs"
    """What a request compares: every pair in both orders, two to four answers, or one answer by a rating."""
    chat: Meta = msgspec.field(default_factory=dict)
    """The chat: its kind and the settings of the kind."""
    judge: Meta = msgspec.field(default_factory=dict)
    """Settings of the way of asking."""
    price: tuple[float, float] | None = None
    """The price of a million tokens, of prompts and of replies, in any currency."""
    judges: tuple[PanelMember, ...] = ()
    """The members of a panel, each with its chat and judge."""
    allow_even: bool = False
    """Accept a panel with an even number of members, whose votes can be even."""
    name: str = "panel"
    """The name of the panel in the judgments."""
    most_cut_off: float = 0.2
    """The largest share of replies that may be cut off."""
    seed: int = 0
    """The seed of the orders that are drawn."""


class Judged:
    """A JudgeModel. Unscored: ``unreadable``, ``refused``, ``cut off``, ``failed``, or why nothing could be asked."""

    def __init__(self, config: Config, jury: JudgePanel, ledger: Path | None) -> None:
        self.config = config
        self.jury = jury
        self.ledger = ledger
        self.name = jury.name
        self.compares_pairs = config.compare == "pairs"

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """One Scores a case, in order."""
        waiting = iter(cases)
        while window := list(islice(waiting, _CASES_AT_A_TIME)):
            for case, answers in zip(window, self._answers(window, None, quietly=True), strict=True):
                yield scores_of(
                    case, [one[self.name] for one in answers], why=refusal_reason(case, self.config.compare)
                )

    def answers(
        self, cases: Sequence[Case], pairs: Sequence[Sequence[tuple[int, int]]] | None = None
    ) -> Iterator[tuple[Mapping[str, Answer], ...]]:
        """Everything is asked first, through the ledger; then the answers are read case by case."""
        return self._answers(cases, pairs, quietly=False)

    def protocol(self) -> dict[str, Any]:
        """Whom it asks, and how."""
        return self.jury.protocol()

    def _answers(
        self, cases: Sequence[Case], pairs: Sequence[Sequence[tuple[int, int]]] | None, *, quietly: bool
    ) -> Iterator[tuple[Mapping[str, Answer], ...]]:
        chosen = [None] * len(cases) if pairs is None else pairs

        def planned() -> Iterator[tuple[Comparison, ...]]:
            for case, own in zip(cases, chosen, strict=True):
                yield plan_comparisons(case, self.config.compare, seed=self.config.seed, pairs=own)

        with open_ledger(self.ledger) as ledger:
            ask_panel(
                self.jury,
                lambda: chain.from_iterable(planned()),
                ledger,
                most_cut_off=self.config.most_cut_off,
                quietly=quietly,
            )
            for own in planned():
                yield tuple(answers_of(self.jury, one, ledger) for one in own)


def scores_of(case: Case, answers: Sequence[Answer], *, why: str | None) -> Scores:
    """A number for each response from what the judges say together; ``why`` nothing was asked, null if it was."""
    names = [response.id for response in case.responses]
    ratings = [one for answer in answers for one in answer.ratings]
    if why is not None:
        shares, reasons = dict.fromkeys(names), dict.fromkeys(names, why)
    elif ratings:
        shares = {one.response: one.value for one in ratings}
        reasons = {one.response: one.outcome or "unreadable" for one in ratings if one.value is None}
    else:
        shares, reasons = shares_won(names, [one for answer in answers for one in answer.verdicts])
    return Scores(prompt=case.prompt.id, language=case.prompt.language, scores={**shares}, unscored={**reasons})


def build(config: Config, jury: JudgePanel, ledger: Path | None = None) -> Judged:
    """The judges, who are built already; ``ledger`` is where their replies are kept, null for nowhere."""
    return Judged(config, jury, ledger)
