"""Results of native speakers by language: shares of items, by hand."""

import msgspec
import pytest

from steelyard.annotation.native_results import native_results
from steelyard.core.types import Judgment
from strategies import case


def said(verdict, *, left="a", judge="p1", fluency="native", suited="yes", kind="human", **meta):
    right = "b" if left == "a" else "a"
    entries = {"entries": {"fluency": fluency, "suited": suited}} if kind == "human" else {}
    return Judgment(left=left, right=right, verdict=verdict, judge=judge, kind=kind, meta={**entries, **meta})


def item(number, *judgments, language="id"):
    made = case(f"p{number}", "ab", judgments, language=language)
    return msgspec.structs.replace(made, ranking=(("a",), ("b",)))


def test_shares_are_of_items_and_languages_stand_apart():
    cases = [
        # The second person saw the responses the other way round.
        item(1, said("left"), said("right", left="b", judge="p2")),
        item(2, said("left"), said("right", judge="p2", fluency="partly")),
        item(3, said("tie"), said("tie", judge="p2"), said("left", judge="m", kind="model")),
        item(4, said("right", suited="no"), said("right", judge="m", kind="model")),
        item(5, said("left", simulated=True), language="es"),
        item(6, language="es"),
    ]
    spanish, indonesian = native_results(cases)
    assert (indonesian.language, indonesian.num_items, indonesian.simulated) == ("id", 4, False)
    # Items 1, 2 and 4 have strict answers: 1, one half, 0.
    assert indonesian.reference.value == pytest.approx(0.5)
    assert indonesian.reference.n == 3
    assert indonesian.same.value == pytest.approx(0.25)
    assert indonesian.native.value == pytest.approx((1 + 0.5 + 1 + 1) / 4)
    assert indonesian.suited.value == pytest.approx(0.75)
    # The model judges item 4 as the person does; item 3 has no strict answer of a person.
    assert (indonesian.judges["m"].value, indonesian.judges["m"].n) == (1, 1)
    assert (spanish.language, spanish.num_items, spanish.simulated) == ("es", 1, True)
    assert (spanish.reference.value, spanish.reference.low) == (1, None)


@pytest.mark.parametrize(("num_right", "num_wrong"), [(50, 0), (40, 10), (25, 25), (0, 50)])
def test_an_interval_holds_its_share_and_has_a_width(num_right, num_wrong):
    cases = [item(number, said("left" if number < num_right else "right")) for number in range(num_right + num_wrong)]
    (result,) = native_results(cases)
    share = result.reference
    assert share.value == pytest.approx(num_right / 50)
    assert share.n == 50
    assert 0 <= share.low <= share.value <= share.high <= 1
    assert 0.05 < share.high - share.low < 0.35


def test_other_judgments_are_no_answers_of_native_speakers():
    assert native_results([item(1, said("left", kind="llm")), case("q", "ab", ["a>b"])]) == ()
