"""Baselines that score responses by surface features: the effect of order, length, markup or chance on a benchmark."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from steelyard.core.config import Config as BaseConfig
from steelyard.core.numerics import derived_seeds
from steelyard.core.plugins import NoSettings, Plugin
from steelyard.core.text import num_characters, num_markdown_marks
from steelyard.core.types import Case, JsonObject, Response, Scores


class RandomConfig(BaseConfig, frozen=True):
    """Settings of the baseline that draws."""

    seed: int = 0
    """Another seed is another draw."""


class SurfaceBaseline(NamedTuple):
    """A RewardModel that is a function of the case: ``values`` gives a finite number for each response, in order.

    ``compares_answers``: the number of a response depends on the other responses of its case, or on their order.
    """

    values: Callable[[Case], Sequence[float]]
    description: JsonObject
    compares_answers: bool = False

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """Return one Scores per case, in order."""
        for case in cases:
            names = [response.id for response in case.responses]
            scores: dict[str, float | None] = dict(zip(names, self.values(case), strict=True))
            yield Scores(prompt=case.prompt.id, language=case.prompt.language, scores=scores)

    def protocol(self) -> JsonObject:
        """Return the name, and the unit or the seed."""
        return self.description


def _by_response(name: str, unit: str, measure: Callable[[Response], float]) -> Callable[[NoSettings], SurfaceBaseline]:
    """Return the builder of a baseline that scores each response by itself."""

    def build(_: NoSettings) -> SurfaceBaseline:
        return SurfaceBaseline(
            lambda case: [measure(response) for response in case.responses], {"model": name, "unit": unit}
        )

    return build


def _first(_: NoSettings) -> SurfaceBaseline:
    """Return the baseline of positions: 0 for the first response of a case, -1 for the second, and so on."""
    return SurfaceBaseline(
        lambda case: [-float(place) for place in range(len(case.responses))], {"model": "first"}, compares_answers=True
    )


def _random(config: RandomConfig) -> SurfaceBaseline:
    """Return the baseline of uniform scores in [0, 1), which depend on the seed and the ids, never on the order."""

    def values(case: Case) -> list[float]:
        names = ("random", case.prompt.id, case.prompt.language or "")
        seeds = derived_seeds(config.seed, names, [response.id for response in case.responses])
        return [seed / 2**63 for seed in seeds]

    return SurfaceBaseline(values, {"model": "random", "seed": config.seed})


KINDS = {
    "first": Plugin(
        NoSettings,
        _first,
        'The baseline "the first answer is better": the information in the order of a file\'s responses.',
    ),
    "longer": Plugin(
        NoSettings,
        _by_response("longer", "code points", lambda response: float(num_characters(response))),
        'The baseline "the longer answer is better": the effect of length alone on a benchmark\'s labels.',
    ),
    "shorter": Plugin(
        NoSettings,
        _by_response("shorter", "code points", lambda response: float(-num_characters(response))),
        'The baseline "the shorter answer is better": the effect of length alone on a benchmark\'s labels.',
    ),
    "markup": Plugin(
        NoSettings,
        _by_response("markup", "Markdown marks", lambda response: float(num_markdown_marks(response))),
        'The baseline "more markup is better": the effect of Markdown alone on a benchmark\'s labels.',
    ),
    "random": Plugin(RandomConfig, _random, "The baseline of random scores: the accuracy of chance."),
}
