from steelyard.core.plugins import build
from strategies import case


def test_it_is_the_longer_model_turned_round():
    cases = [case("p", "ab", language="zh"), case("q", "xyz")]
    longer, shorter = (list(build("models", kind).score(cases)) for kind in ("longer", "shorter"))
    for one, other in zip(longer, shorter, strict=True):
        assert (one.prompt, one.language) == (other.prompt, other.language)
        assert {name: -score for name, score in one.scores.items()} == other.scores
