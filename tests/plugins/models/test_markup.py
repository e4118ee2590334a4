import pytest

from steelyard.core.plugins import build
from steelyard.core.types import Case, Message, Response
from steelyard.plugins.models.markup import num_marks
from strategies import prompt


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("", 0),
        ("plain words, 2 * 3 * 4 = 24, a_b_c, #hashtag, -5 degrees", 0),
        ("# Title\n\nwords", 1),
        ("## 标题\n- 甲\n- 乙\n", 3),
        ("1. one\n2) two\n3、三", 3),
        ("**bold** and __bold__ and `code`", 3),
        ("> quoted\n> again", 2),
        ("| a | b |\n| - | - |\n| 1 | 2 |", 3),
        ("[link](http://x.y) ![image](z.png)", 2),
        ("---\n", 1),
        ("```python\n# no heading\n- no item\n**x**\n```\nafter", 1),
        ("```\nnever closed\n- x", 1),
        ("**שלום** and **مرحبا**", 2),
        ("2 ** 3 ** 4", 0),
        ("3.14 is pi\n1984 was a year", 0),
    ],
)
def test_marks_are_counted(text, marks):
    assert num_marks(text) == marks


def test_more_markup_wins():
    turns = (Message(role="assistant", content="- a"), Message(role="assistant", content="- b"))
    one = Case(prompt=prompt("p"), responses=(Response(id="a", text="**x**"), Response(id="b", messages=turns)))
    model = build("models", "markup")
    (line,) = model.score([one])
    assert line.scores == {"a": 1.0, "b": 2.0}
    assert model.protocol()["model"] == "markup"
