"""A panel: several reward models whose scores of a case are put on one scale and averaged."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, pstdev
from typing import Literal

from steelyard.core.checks import STOPPED
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError
from steelyard.core.iteration import batched
from steelyard.core.protocols import ComparesAnswers, RewardModel
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import number_of
from steelyard.core.types import Case, JsonObject, Scores

_CASES_AT_A_TIME = 64


class Member(BaseConfig, frozen=True):
    """One model of the panel: the value of ``--model``, its settings, and its scale for ``combine=scale``."""

    model: str
    """A trained model's folder, or a kind of model."""
    settings: JsonObject = {}  # noqa: RUF012 - msgspec copies it
    """Settings of the model's kind: docs/settings.md, under models."""
    mean: float = 0.0
    """With scale: the mean of its scores on some sample."""
    deviation: float = 1.0
    """With scale: the standard deviation of its scores on that sample."""


class Config(BaseConfig, frozen=True):
    """The combination of the members' scores; each has the same weight.

    ``rank``: the share of the case's other answers that an answer beats, a tie counting half: from 0 to 1. ``z``: the
    z-score among the answers of the case, 0 where all are equal. Neither compares answers of different cases.
    ``scale``: the z-score by each member's mean and deviation in the settings, comparable across cases.
    """

    members: tuple[str | Member, ...] = ()
    """The models: names, or tables with their settings."""
    combine: Literal["rank", "z", "scale"] = "rank"
    """Combination of scores: mean rank in the case, z-score in the case, or z-score by given scales."""


class PanelModel:
    """Scores by the members' mean. An answer that a member leaves unscored is unscored, with that member's reason."""

    def __init__(self, config: Config, members: Sequence[RewardModel]) -> None:
        self.combine = config.combine
        self.settings = [Member(model=name) if isinstance(name, str) else name for name in config.members]
        self.members = members
        self.compares_answers = config.combine != "scale" or any(
            isinstance(member, ComparesAnswers) and member.compares_answers for member in members
        )

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """Yield one Scores per case, in order."""
        for window in batched(cases, _CASES_AT_A_TIME):
            lines = zip(*(member.score(window) for member in self.members), strict=True)
            for case, of_members in zip(window, lines, strict=True):
                # After the last case that a stopped member scored in part, the member raises InterruptedRun.
                if not any(STOPPED in line.unscored.values() for line in of_members):
                    yield self._combined(case, of_members)

    def protocol(self) -> JsonObject:
        """Return how the members are combined, and each member's protocol."""
        members = [member.protocol() for member in self.members]
        scales = [[member.mean, member.deviation] for member in self.settings] if self.combine == "scale" else None
        return {"model": "panel", "combine": self.combine, "members": members, "scales": scales}

    def _combined(self, case: Case, lines: Sequence[Scores]) -> Scores:
        unscored: dict[str, str] = {}
        for member, line in zip(self.settings, lines, strict=True):
            for name, reason in line.unscored.items():
                unscored.setdefault(name, f"{member.model}: {reason}")
        names = [response.id for response in case.responses if response.id not in unscored]
        scaled = [
            self._scaled(member, [float(line.scores[name] or 0.0) for name in names])
            for member, line in zip(self.settings, lines, strict=True)
        ]
        means = dict(zip(names, map(fmean, zip(*scaled, strict=True)), strict=True))
        return Scores(
            prompt=case.prompt.id,
            language=case.prompt.language,
            scores={response.id: means.get(response.id) for response in case.responses},
            unscored={response.id: unscored[response.id] for response in case.responses if response.id in unscored},
            cut=tuple(name for name in names if any(name in line.cut for line in lines)),
        )

    def _scaled(self, member: Member, scores: Sequence[float]) -> list[float]:
        if self.combine == "rank":
            return shares_beaten(scores)
        if self.combine == "z":
            return z_scores(scores)
        return [(score - member.mean) / member.deviation for score in scores]


def shares_beaten(scores: Sequence[float]) -> list[float]:
    """Return for each score the share of the others that it beats, a tie counting half; 0.5 for a single score."""
    others = len(scores) - 1
    if others < 1:
        return [0.5] * len(scores)
    # Each score also ties with itself: that half is taken out.
    beaten = [sum((score > other) + 0.5 * (score == other) for other in scores) - 0.5 for score in scores]
    return [number / others for number in beaten]


def z_scores(scores: Sequence[float]) -> list[float]:
    """Return each score's distance from the mean in population standard deviations; 0 where all are equal."""
    deviation = pstdev(scores) if scores else 0.0
    return [(score - fmean(scores)) / deviation if deviation else 0.0 for score in scores]


def build(config: Config, members: Sequence[RewardModel] = ()) -> PanelModel:
    """Return the panel of built models. Raises ConfigError for fewer than two, and for no deviation."""
    if len(config.members) < 2 or len(members) != len(config.members):
        problem = f"a panel of {number_of(len(config.members), 'model')}"
        raise ConfigError(
            problem,
            where="model.members",
            do=Advice("name two or more: ", Remedy("model.members", ["longer", "random"])),
        )
    for member in config.members:
        if isinstance(member, Member) and not member.deviation > 0:
            raise ConfigError(f"deviation={member.deviation}", where=f"model.members {member.model}", allowed="above 0")
    return PanelModel(config, members)
