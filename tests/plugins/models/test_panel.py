import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.errors import ConfigError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Response, Scores
from steelyard.plugins.models.panel import shares_beaten, z_scores
from strategies import prompt

# longer: 9, 5, 3 characters; markup: 0, 1, 1 marks
CASE = Case(
    prompt=prompt("p"),
    responses=(Response(id="a", text="nine char"), Response(id="b", text="**b**"), Response(id="c", text="`c`")),
)


def panel(members=("longer", "markup"), **settings):
    names = [one if isinstance(one, str) else one["model"] for one in members]
    built = [build("models", name) for name in names]
    return build("models", "panel", {"members": list(members), **settings}, members=built)


def test_ranks_by_hand():
    (line,) = panel().score([CASE])
    assert line.scores == {"a": (1 + 0) / 2, "b": (0.5 + 0.75) / 2, "c": (0 + 0.75) / 2}


def test_z_scores_of_the_case_by_hand():
    (line,) = panel(combine="z").score([CASE])
    spread, marks = math.sqrt(56 / 9), math.sqrt(2 / 9)  # lengths 9, 5, 3 lie 10/3, -2/3, -8/3 from their mean
    expected = {
        "a": (10 / 3 / spread - 2 / 3 / marks) / 2,
        "b": (-2 / 3 / spread + 1 / 3 / marks) / 2,
        "c": (-8 / 3 / spread + 1 / 3 / marks) / 2,
    }
    assert line.scores == pytest.approx(expected)


def test_given_scales_make_scores_of_all_cases_comparable():
    members = [{"model": "longer", "mean": 5.0, "deviation": 2.0}, {"model": "markup", "mean": 0.0, "deviation": 0.5}]
    model = panel(members, combine="scale")
    (line,) = model.score([CASE])
    assert line.scores == {"a": (2 + 0) / 2, "b": (0 + 2) / 2, "c": (-1 + 2) / 2}
    assert model.protocol()["scales"] == [[5.0, 2.0], [0.0, 0.5]]


def test_an_answer_that_one_member_cannot_score_has_no_score():
    class Silent:
        def score(self, cases):
            for one in cases:
                scores = {response.id: None if response.id == "b" else 1.0 for response in one.responses}
                yield Scores(prompt=one.prompt.id, scores=scores, unscored={"b": "cut"})

        def protocol(self):
            return {"model": "silent"}

    built = [build("models", "longer"), Silent()]
    model = build("models", "panel", {"members": ["longer", "silent"]}, members=built)
    (line,) = model.score([CASE])
    assert line.scores == {"a": 0.75, "b": None, "c": 0.25}
    assert line.unscored == {"b": "silent: cut"}


def test_a_panel_of_one_and_a_scale_of_nothing_are_refused():
    with pytest.raises(ConfigError, match="a panel of 1 model"):
        panel(["longer"])
    with pytest.raises(ConfigError, match="deviation=0"):
        panel([{"model": "longer", "deviation": 0.0}, "markup"], combine="scale")


@given(st.lists(st.integers(-5, 5).map(float), min_size=2, max_size=8))
def test_shares_and_z_scores_keep_order_and_centre(scores):
    shares, scaled = shares_beaten(scores), z_scores(scores)
    assert sum(shares) == pytest.approx(len(scores) / 2)
    assert sum(scaled) == pytest.approx(0, abs=1e-9)
    for one, share, z in zip(scores, shares, scaled, strict=True):
        for other, its_share, its_z in zip(scores, shares, scaled, strict=True):
            assert (one > other) == (share > its_share)
            assert (one > other) == (z > its_z)


def test_no_answers_and_one_answer():
    assert (shares_beaten([]), shares_beaten([3.0]), z_scores([]), z_scores([3.0])) == ([], [0.5], [], [0.0])
