from steelyard.core.plugins import build
from steelyard.core.types import Case, Response
from strategies import prompt


def test_the_number_of_code_points_is_the_score():
    texts = {"a": "", "b": "数学", "c": "👋🏽", "d": "abc"}
    given = Case(prompt=prompt(), responses=tuple(Response(id=name, text=text) for name, text in texts.items()))
    (line,) = build("models", "longer").score([given])
    assert line.scores == {"a": 0.0, "b": 2.0, "c": 2.0, "d": 3.0}  # the waving hand has a skin tone: two code points
