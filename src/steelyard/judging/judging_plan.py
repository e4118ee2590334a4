"""Questions of a judging, before anything is sent: the comparisons of a case file, as a function of it and of settings.

Nothing here sends, writes or remembers: a run that continues plans the same, and so does a forecast.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from steelyard.annotation.triple_designs import TripleDesign
from steelyard.core.comparison import Comparison
from steelyard.core.config import Positive
from steelyard.core.errors import ConfigError, choices
from steelyard.core.protocols import Chat
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Input, InputFinding
from steelyard.io.cases import FileCases, read_cases
from steelyard.io.lines import read_toml, toml_places
from steelyard.io.scored_cases import HashCoverage, JoinedScores
from steelyard.judging.pair_plans import PairChoice, PairPlan
from steelyard.judging.panel import PanelChoice, PanelConfig, PanelMember, choose_panel
from steelyard.judging.planning import JudgeTask, PlannedCase, plan_case
from steelyard.judging.token_use import Ceilings

_NO_CEILINGS = Ceilings()


class Config(PanelConfig, frozen=True):
    """The questions, and the judges that answer them. A combined judgment has the single replies in its meta."""

    task: JudgeTask = "pairs"
    """Content of a request: pairs, triples, best (of up to four) or ratings. The setting triples says which."""
    pairs: PairChoice = "all"
    """Of the task pairs: all, random, unsure or disputed. Random ones are num_pairs a prompt, unsure ones by scores
    or a judge, disputed ones by two judges."""
    num_pairs: Positive | None = None
    """The number of pairs of a prompt. They are drawn with each response equally often, or the least sure."""
    max_margin: float | None = None
    """With pairs=unsure and --scores: compare the pairs whose scores differ by less."""
    judges: tuple[str, ...] = ()
    """With pairs=unsure or disputed: the judges of the file that count. Default: all."""
    triples: TripleDesign = "covering"
    """From six responses on: covering, every pair in the fewest triples; or circular, as many triples as responses."""
    members: tuple[PanelMember, ...] = ()
    """The members of a panel, each with its chat and judge."""
    write: Literal["combined", "replies"] = "combined"
    """Write one judgment for all replies about a pair, or one for every reply with the order it had."""
    prefix_distance: Positive | None = None
    """The distance of requests that begin alike, so that a server has it cached. Default: 32; a slot of llama.cpp
    gets one prompt after the other."""
    prime: bool = True
    """Await the first reply with each of the first beginnings before sending more: only then caches have it."""
    repeats: Positive = 1
    """Number of times that each question is sent. The verdict is that of most repeats."""
    num_resamples: Positive = 1000
    """The number of bootstrap resamples of prompts."""
    seed: int = 0
    """The seed of drawn orders and of the resamples."""


class JudgingPlan(NamedTuple):
    """The comparisons of a judging, in the order of the case file, which is read each time: it may exceed memory.

    ``scores``: the file of scores by which pairs are unsure.
    """

    cases: Path
    config: Config
    scores: Path | None = None

    @property
    def pairs(self) -> PairPlan:
        """Which pairs of a prompt are compared."""
        config = self.config
        return PairPlan(config.pairs, config.num_pairs, config.max_margin, config.judges)

    def check(self) -> None:
        """Raise ConfigError for a choice of pairs that lacks a setting or has one without effect."""
        self._check_judges()
        self.pairs.check(has_scores=self.scores is not None)
        task = self.config.task
        if task != "pairs" and self.pairs.choice != "all":
            raise ConfigError(
                f"task={task} has no pairs to choose", where="pairs", do=Advice("say ", Remedy("task", "pairs"))
            )

    def planned(self) -> Iterator[PlannedCase]:
        """Yield every case with its comparisons, or with the reason for having none."""
        config = self.config
        planned = partial(plan_case, task=config.task, plan=self.pairs, seed=config.seed, triples=config.triples)
        if self.scores is None:
            return map(planned, read_cases(self.cases))
        return (planned(case, scores=line.scores) for case, line in JoinedScores(FileCases(self.cases), self.scores))

    def hash_findings(self, inputs: Mapping[str, Input]) -> tuple[InputFinding, ...]:
        """Return a finding if the scores do not say which texts were scored."""
        assert self.scores is not None, "a plan by scores"
        coverage = HashCoverage(line.scores for line in JoinedScores(FileCases(self.cases), self.scores))
        return coverage.findings(inputs["scores"], [inputs["cases"]])

    def comparisons(self) -> Iterator[Comparison]:
        """Yield the comparisons of all cases."""
        return (comparison for case in self.planned() for comparison in case.comparisons)

    def _check_judges(self) -> None:
        """Raise ConfigError for a judge that the plan names and that no judgment of the file is by."""
        judges = self.config.judges
        if not judges:
            return
        known = {judgment.judge for case in read_cases(self.cases) for judgment in case.judgments}
        for judge in judges:
            if judge not in known:
                allowed = choices(judge, known) if known else "none: the file has no judgments"
                raise ConfigError(f"no judgment of {self.cases} is by {judge!r}", where="judges", allowed=allowed)


def choose_judges(
    config: Config, prices: Path | None, chat: Chat | None, ceilings: Ceilings = _NO_CEILINGS
) -> PanelChoice:
    """Return the judges with their prices, those of a file or of the settings; ``chat`` is one that exists already.

    Raises ConfigError where a model has no price and a ceiling of cost needs one.
    """
    choice = choose_panel(
        config.task,
        chat=config.chat,
        judge=config.judge,
        price=config.price,
        members=config.members,
        allow_even=config.allow_even,
        built=chat,
    )
    if prices is not None:
        with toml_places(prices):
            choice = choice.priced(read_toml(prices), where=str(prices))
    if any(member.price is None for member in choice.members):
        ceilings.check(
            Advice("name a file of prices, ", Remedy("prices", "prices.toml"), ", or ", Remedy("price", [1.0, 2.0]))
        )
    return choice
