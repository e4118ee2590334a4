import math

from steelyard.core.plugins import build
from strategies import case


def lines(cases, seed=0):
    return {line.prompt: line.scores for line in build("models", "random", {"seed": seed}).score(cases)}


def test_scores_depend_on_seed_and_ids_alone():
    cases = [case("p"), case("q"), case("r")]
    assert lines(cases) == lines(cases[::-1])
    assert lines(cases) != lines(cases, seed=1)
    assert len({score for scores in lines(cases).values() for score in scores.values()}) == 15


def test_scores_are_uniform():
    scores = [score for own in lines([case(f"p{index}") for index in range(2000)]).values() for score in own.values()]
    assert all(0 <= score < 1 for score in scores)
    # Kolmogorov-Smirnov: the greatest distance from the uniform distribution, with 1.95 / sqrt(n) the 0.1 % bound
    ordered = sorted(scores)
    distance = max(abs(score - index / len(ordered)) for index, score in enumerate(ordered))
    assert distance < 1.95 / math.sqrt(len(ordered))
