from steelyard.core.plugins import build
from strategies import case


def test_the_first_response_has_the_greatest_score():
    (line,) = build("models", "first").score([case(responses="xab")])
    assert line.scores == {"x": 0.0, "a": -1.0, "b": -2.0}
