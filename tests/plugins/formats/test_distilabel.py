import pytest

from format_rows import read
from steelyard.core.errors import RecordError
from steelyard.core.plugins import build

ROW = {
    "instruction": "介绍",
    "generations": ["甲", "乙"],
    "generation_models": ["m1", "m2"],
    "ratings": [5, None],
    "rationales": ["准确", "unread"],
    "ultrafeedback_model": "gpt-4",
}


def test_a_rating_has_its_rationale_and_its_judge():
    (one,), _ = read("distilabel", ROW)
    assert [response.author for response in one.responses] == ["m1", "m2"]
    (rating,) = one.ratings
    assert (rating.value, rating.range, rating.rater, rating.kind) == (5, (1, 5), "gpt-4", "llm")
    assert rating.meta == {"rationale": "准确"}
    assert (one.ranking, one.judgments) == (None, ())


def test_the_name_of_later_versions_is_read():
    row = {("model_names" if key == "generation_models" else key): value for key, value in ROW.items()}
    (one,), _ = read("distilabel", row)
    assert one.responses[0].author == "m1"


def test_what_cannot_be_a_response_is_counted():
    _, warnings = read("distilabel", ROW | {"generations": ["甲", None]}, ROW | {"generations": ["甲", "甲"]})
    assert warnings == {"generations that are null": 1, "repeated responses": 1}
    _, warnings = read("distilabel", ROW | {"ratings": [6, None]})
    assert warnings == {"ratings outside their scale (rating)": 1}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"ratings": [1]}, "at ratings: 1 values for 2 generations"),
        ({"ratings": ["5", None]}, r"at ratings\[0\]: a value that is str"),
        ({"generations": ["a", 2]}, r"at generations\[1\]: a value that is int"),
        ({"rationales": "x"}, "has str under 'rationales'"),
        ({"generation_models": [1, None]}, r"at generation_models\[0\]"),
        ({"generations": None}, "lacks 'generations'"),
    ],
)
def test_a_row_of_another_form_is_refused_with_its_place(change, what):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:2.*{what}"):
        read("distilabel", ROW, ROW | change)


def test_generations_without_ratings_are_not_claimed():
    matches = build("formats", "distilabel").matches
    assert matches(ROW)
    assert not matches({"instruction": "i", "generations": ["a"]})
