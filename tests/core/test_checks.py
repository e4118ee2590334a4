import math

import pytest
from hypothesis import given

from each_value import each
from steelyard.core.checks import check_case
from steelyard.core.errors import RecordError
from steelyard.core.types import Message, Pair, Rating, Response
from strategies import case, cases, judgment

PAIR = Pair(better="a", worse="b")


def pair_of(**numbers):
    return Pair(better="a", worse="b", **numbers)


def rating_of(value, **fields):
    return Rating(response="a", rater="r", kind="human", dimension="d", value=value, **fields)


def test_weights_of_nothing_and_margins_below_nothing_are_numbers():
    one = case(pairs=(pair_of(weight=0.0), pair_of(margin=-1.5)), ratings=(rating_of(3.0, range=(3.0, 3.0)),))
    assert check_case(one) is one


@given(cases())
def test_a_case_that_holds_together_passes(one):
    assert check_case(one) is one


@each(
    ("broken", "found"),
    [
        (case("p", "aba"), "responses: response id 'a' is given twice"),
        (case(judgments=["a>z"]), r"judgments\[0\]: names response 'z', which the case does not have"),
        (case(judgments=["a>b", "c>c"]), r"judgments\[1\]: compares response 'c' with itself"),
        (case(judgments=[judgment("a>b", shown=("a", "q"))]), r"judgments\[0\]\.shown: names response 'q'"),
        (case(judgments=[judgment("a>b", id="1"), judgment("a>c", id="1")]), "judgment id '1' is given twice"),
        (case(ranking=(("a",), ("z",))), "ranking: names response 'z'"),
        (case(ranking=(("a",), ("b", "a"))), "ranking: response 'a' is ranked twice"),
        (case(ranking=(("a",), ())), "ranking: a tier is empty"),
        (case(pairs=(Pair(better="a", worse="a"),)), r"pairs\[0\]: compares response 'a' with itself"),
        (case(pairs=(Pair(better="a", worse="z"),)), r"pairs\[0\]: names response 'z'"),
        (case(pairs=(PAIR, pair_of(weight=-1.0))), r"pairs\[1\]\.weight: the weight is -1\.0"),
        (case(pairs=(pair_of(weight=math.inf),)), r"pairs\[0\]\.weight: the weight is inf"),
        (case(pairs=(pair_of(weight=math.nan),)), r"pairs\[0\]\.weight: the weight is nan"),
        (case(pairs=(PAIR, PAIR, pair_of(margin=math.nan))), r"pairs\[2\]\.margin: the margin is nan"),
        (case(pairs=(pair_of(margin=-math.inf),)), r"pairs\[0\]\.margin: the margin is -inf"),
        (case(ratings=(rating_of(math.inf),)), r"ratings\[0\]\.value: the value is inf"),
        (case(ratings=(rating_of(1.0, range=(5.0, 1.0)),)), r"ratings\[0\]\.range: the range is \[5\.0, 1\.0\]"),
        (
            case(ratings=(Rating(response="z", rater="r", kind="human", dimension="d", value=1.0),)),
            r"ratings\[0\]\.response: names response 'z'",
        ),
    ],
)
def test_what_does_not_hold_together_is_named(broken, found):
    with pytest.raises(RecordError, match=found):
        check_case(broken)


@pytest.mark.parametrize(
    "response", [Response(id="a"), Response(id="a", text="t", messages=(Message(role="assistant", content="t"),))]
)
def test_a_response_is_text_or_messages(response):
    broken = case("p", "")
    broken = type(broken)(prompt=broken.prompt, responses=(response,))
    with pytest.raises(RecordError, match=r"responses\[0\]: needs either text or messages"):
        check_case(broken)
