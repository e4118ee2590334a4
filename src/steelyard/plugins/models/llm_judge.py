"""A language model as a judge: its verdicts on pairs, its best of four, or its ratings, alone or as a panel."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal

from steelyard.core.comparison import Answer, Comparison
from steelyard.core.iteration import batched
from steelyard.core.types import Case, JsonObject, Scores
from steelyard.io.ledger import open_ledger
from steelyard.judging.asking import answers_of, ask_panel
from steelyard.judging.panel import JudgePanel, PanelConfig, PanelMember
from steelyard.judging.planning import plan_comparisons, refusal_reason
from steelyard.judging.verdicts import shares_won

_CASES_AT_A_TIME = 64


class Config(PanelConfig, frozen=True):
    """Settings of a judge or a panel of judges.

    The score of an answer is its rating, or the share of its comparisons that it won, a tie counting half.
    """

    task: Literal["pairs", "best", "ratings"] = "pairs"
    """Content of a request: every pair in both orders, two to four answers, or one answer by a rating."""
    judges: tuple[PanelMember, ...] = ()
    """The members of a panel, each with its chat and judge."""
    seed: int = 0
    """The seed of the orders that are drawn."""


class LlmJudge:
    """A JudgeModel. Unscored: ``unparsed``, ``refused``, ``cut off``, ``failed``, or why no question is possible."""

    def __init__(self, config: Config, panel: JudgePanel, ledger: Path | None) -> None:
        self.config = config
        self.panel = panel
        self.ledger = ledger
        self.name = panel.name
        self.compares_pairs = config.task == "pairs"

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """Yield one Scores per case, in order."""
        for window in batched(cases, _CASES_AT_A_TIME):
            for case, answers in zip(window, self._answers(window, None, quietly=True), strict=True):
                combined = [answer[self.name] for answer in answers]
                yield scores_of(case, combined, why=refusal_reason(case, self.config.task))

    def answers(
        self, cases: Sequence[Case], pairs: Sequence[Sequence[tuple[int, int]]] | None = None
    ) -> Iterator[tuple[Mapping[str, Answer], ...]]:
        """Send every question first, through the ledger; then yield the answers case by case."""
        return self._answers(cases, pairs, quietly=False)

    def protocol(self) -> JsonObject:
        """Return the judges and their settings."""
        return self.panel.protocol()

    def _answers(
        self, cases: Sequence[Case], pairs: Sequence[Sequence[tuple[int, int]]] | None, *, quietly: bool
    ) -> Iterator[tuple[Mapping[str, Answer], ...]]:
        pairs_by_case = [None] * len(cases) if pairs is None else pairs

        def planned() -> Iterator[tuple[Comparison, ...]]:
            for case, case_pairs in zip(cases, pairs_by_case, strict=True):
                yield plan_comparisons(case, self.config.task, seed=self.config.seed, pairs=case_pairs)

        with open_ledger(self.ledger) as ledger:
            ask_panel(
                self.panel,
                lambda: chain.from_iterable(planned()),
                ledger,
                max_truncated=self.config.max_truncated,
                quietly=quietly,
            )
            for comparisons in planned():
                yield tuple(answers_of(self.panel, comparison, ledger) for comparison in comparisons)


def scores_of(case: Case, answers: Sequence[Answer], *, why: str | None) -> Scores:
    """Return a number for each response from the combined answers, or ``why`` no question was possible."""
    names = [response.id for response in case.responses]
    ratings = [rating for answer in answers for rating in answer.ratings]
    if why is not None:
        shares, reasons = dict.fromkeys(names), dict.fromkeys(names, why)
    elif ratings:
        shares = {rating.response: rating.value for rating in ratings}
        reasons = {rating.response: rating.outcome or "unparsed" for rating in ratings if rating.value is None}
    else:
        shares, reasons = shares_won(names, [verdict for answer in answers for verdict in answer.verdicts])
    return Scores(prompt=case.prompt.id, language=case.prompt.language, scores={**shares}, unscored={**reasons})


def build(config: Config, panel: JudgePanel, ledger: Path | None = None) -> LlmJudge:
    """Return the model of judges that are built already; ``ledger`` is the file of their replies, null for none."""
    return LlmJudge(config, panel, ledger)
