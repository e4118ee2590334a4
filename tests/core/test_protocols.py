import pytest

from steelyard.core.protocols import score_all
from steelyard.core.types import Scores
from strategies import case


class Halves:
    """A model that forgets every second case."""

    def score(self, cases):
        return (Scores(prompt=one.prompt.id, scores={}) for index, one in enumerate(cases) if index % 2 == 0)

    def protocol(self):
        return {}


def test_a_model_must_score_every_case():
    assert [line.prompt for line in score_all(Halves(), [case(id="x")])] == ["x"]
    with pytest.raises(AssertionError, match="every case"):
        score_all(Halves(), [case(id="x"), case(id="y")])
