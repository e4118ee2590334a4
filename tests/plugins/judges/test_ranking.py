import pytest

from steelyard.core.comparison import Comparison, Reply
from steelyard.core.errors import ConfigError
from steelyard.core.plugins import build
from steelyard.core.types import Response
from strategies import prompt


def judged(*texts, **settings):
    shown = tuple(Response(id=name, text=f"answer {name}") for name in "xyz")
    judge = build("judges", "ranking", settings)
    answer = judge.read(
        Comparison(prompt=prompt(), responses=shown, mark="0"), [Reply(request="r", text=text) for text in texts]
    )
    return {f"{one.left}{one.right}": (one.outcome, one.is_inconsistent) for one in answer.verdicts}


def test_a_ranking_is_a_verdict_on_every_pair():
    # y > x = z, and in reverse order (A is z, C is x) the same
    found = judged("[[B > A = C]]", "[[B > C = A]]")
    assert found == {"xy": ("right", False), "xz": ("tie", False), "yz": ("left", False)}


def test_orders_that_disagree_do_so_pair_by_pair():
    # x > y > z, and then z > y > x
    found = judged("[[A > B > C]]", "[[A > B > C]]")
    assert found == {"xy": ("tie", True), "xz": ("tie", True), "yz": ("tie", True)}
    # x > y > z, and then y > x > z: only x and y are turned
    assert judged("[[A > B > C]]", "[[B > C > A]]") == {
        "xy": ("tie", True),
        "xz": ("left", False),
        "yz": ("left", False),
    }


@pytest.mark.parametrize(
    ("text", "outcome"), [("[[A > B]]", "unparsed"), ("", "unparsed"), ("很抱歉，我无法判断。", "refused")]
)
def test_what_is_no_ranking_leaves_nothing(text, outcome):
    assert set(judged("[[A > B > C]]", text).values()) == {(outcome, False)}


def test_one_order():
    assert judged("[[C > B > A]]", orders="one")["xz"] == ("right", False)


def test_there_is_no_other_form():
    with pytest.raises(ConfigError, match="carries no ranking"):
        build("judges", "ranking", {"form": "letter"})
