"""The baseline "the first answer is better": what a file gives away by the order of its responses."""

from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Case, Scores


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Model:
    """Scores by position: 0 for the first response of a case, -1 for the second, and so on."""

    compares_answers = True

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """One Scores a case, in order."""
        for case in cases:
            scores: dict[str, float | None] = {
                response.id: -float(place) for place, response in enumerate(case.responses)
            }
            yield Scores(prompt=case.prompt.id, language=case.prompt.language, scores=scores)

    def protocol(self) -> dict[str, Any]:
        """Nothing but the name."""
        return {"model": "first"}


def build(config: Config) -> Model:
    """The baseline."""
    return Model()
