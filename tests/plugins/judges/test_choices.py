import pytest

from steelyard.core.comparison import Reply
from steelyard.plugins.judges.tasks import parse_choice


@pytest.mark.parametrize(
    ("text", "failure", "place", "outcome"),
    [
        ("[[B]]", None, 1, None),
        ("[[B]]", "cut off", None, "cut off"),
        ("[[B]]", "refused", None, "refused"),
        (None, "failed", None, "failed"),
        ("no idea", None, None, "unparsed"),
        ("Sorry, I can't decide.", None, None, "refused"),
        ("<think>Hm.</think>\nI'm sorry, but I cannot.", None, None, "refused"),
        ("I'm sorry to say that A is weak.\n[[B]]", None, 1, None),
        (None, None, None, "unparsed"),
    ],
)
def test_a_place_or_a_reason(text, failure, place, outcome):
    choice = parse_choice(Reply(request="r", text=text, failure=failure), "brackets", ("A", "B"))
    assert (choice.place, choice.outcome) == (place, outcome)
