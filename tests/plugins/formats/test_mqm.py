import pytest
from hypothesis import given
from hypothesis import strategies as st

from format_rows import read
from steelyard.core.errors import RecordError
from steelyard.plugins.formats.translations import marked, unmarked, weight


def row(system="s", rater="r", source="你好", target="hello", category="No-error", severity="No-error", **fields):
    place = {"doc": "d", "globalSegId": "1"}
    return {**place, "system": system, "rater": rater, "source": source, "target": target,
            "category": category, "severity": severity, **fields}  # fmt: skip


@pytest.mark.parametrize(
    ("category", "severity", "penalty"),
    [
        ("Accuracy/Mistranslation", "Major", 5),
        ("Accuracy/Mistranslation", "Minor", 1),
        ("Fluency/Punctuation", "Minor", 0.1),
        ("Fluency/Punctuation", "Major", 5),
        ("Non-translation!", "Major", 25),
        ("Style/Awkward", "Neutral", 0),
        ("No-error", "No-error", 0),
        ("Found", "HOTW-test", 0),
    ],
)
def test_the_weights_are_the_published_ones(category, severity, penalty):
    assert weight(category, severity) == penalty


def test_a_rating_sums_the_errors_of_one_rater():
    rows = [
        row(target="<v>hallo</v>, wrld.", category="Fluency/Spelling", severity="Major"),
        row(target="hallo, <v>wrld</v>.", category="Fluency/Spelling", severity="Minor"),
        row(target="hallo, wrld<v>.</v>", category="Fluency/Punctuation", severity="Minor"),
        row(target="hallo, wrld.", rater="q"),
    ]
    (one,), warnings = read("mqm", *rows)
    first, second = one.ratings
    assert (first.rater, first.kind, first.dimension, first.range) == ("r", "human", "mqm", None)
    assert first.value == pytest.approx(-6.1)
    assert first.spans == (
        (0, 5, "Fluency/Spelling", "Major"),
        (7, 11, "Fluency/Spelling", "Minor"),
        (11, 12, "Fluency/Punctuation", "Minor"),
    )
    assert (second.rater, second.value, second.spans) == ("q", 0, None)
    assert str(second.value) == "0.0"
    assert [response.text for response in one.responses] == ["hallo, wrld."]
    assert one.judgments == ()
    assert not warnings


def test_spans_count_code_points_of_the_raw_text():
    (one,), _ = read("mqm", row(target="👍🏽 שלום <v>क्षि</v>!", category="c", severity="Minor"))
    ((start, end, *_),) = one.ratings[0].spans
    assert one.responses[0].text[start:end] == "क्षि"


def test_an_error_marked_in_the_source_has_no_span_in_the_answer():
    given_row = row(source="你<v>好</v>", category="Accuracy/Omission", severity="Major")
    (one,), _ = read("mqm", given_row)
    assert (one.prompt.messages[0].content, one.ratings[0].spans, one.ratings[0].value) == ("你好", None, -5)


def test_rows_of_several_systems_are_one_case():
    rows = [row("s"), row("t", target="x"), row("s", category="c", severity="Minor"), row("t", "q", target="x")]
    (one,), _ = read("mqm", *rows)
    assert [(r.response, r.rater, r.value) for r in one.ratings] == [("s", "r", -1), ("t", "r", 0), ("t", "q", 0)]


def test_a_text_that_differs_between_rows_is_kept_and_counted():
    rows = [row(target="a b"), row(rater="q", target="a <v>b</v> ", category="c", severity="Minor")]
    (one,), warnings = read("mqm", *rows)
    assert warnings == {"target texts that differ between the rows of one": 1}
    assert one.ratings[1].spans == ((2, 3, "c", "Minor"),)


def test_marks_without_a_partner_are_counted():
    rows = [row(target="a <v>b")]
    (one,), warnings = read("mqm", *rows)
    assert (one.responses[0].text, warnings) == ("a b", {"marks without a partner": 1})


def test_a_segment_in_two_places_is_refused():
    with pytest.raises(
        RecordError, match=r"f\.jsonl:3: segment 'd/1' is already used at f\.jsonl:1(?s:.*)sort the rows"
    ):
        read("mqm", row(), row(globalSegId="2"), row())


@pytest.mark.parametrize(
    ("change", "found"),
    [({"rater": None}, ": the row lacks 'rater'"), ({"globalSegId": None}, " at globalSegId: the row")],
)
def test_a_broken_row_is_named(change, found):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:2{found}"):
        read("mqm", row(), row() | change)


spans = st.lists(st.integers(0, 20), max_size=6, unique=True).map(sorted)


@given(st.text(min_size=20, max_size=20), spans)
def test_marks_come_back(text, places):
    if "<" in text or ">" in text:
        return
    pairs = tuple(zip(places[::2], places[1::2], strict=False))
    assert unmarked(marked(text, pairs)) == (text, pairs, True)
