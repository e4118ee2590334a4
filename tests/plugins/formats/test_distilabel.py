import msgspec
import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from steelyard.core.plugins import build
from steelyard.core.types import Message, Rating
from strategies import case

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


@pytest.mark.parametrize(
    "change",
    [
        {"generations": ["甲", None], "ratings": [5, 2]},
        {"generations": [None, None]},
        {"generations": []} | {key: [] for key in ("generation_models", "ratings", "rationales")},
        {"generation_models": None, "ratings": [None, None], "rationales": None},
        {"generations": ["甲", "甲"], "ratings": [4.5, 0]},
    ],
)
def test_nulls_and_repeats_come_back(change):
    row = ROW | change
    assert write("distilabel", *read("distilabel", row)[0])[0] == [row]


def test_the_name_of_later_versions_comes_back():
    row = {("model_names" if key == "generation_models" else key): value for key, value in ROW.items()}
    (one,), _ = read("distilabel", row)
    assert one.responses[0].author == "m1"
    assert write("distilabel", one)[0] == [row]


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


def test_ratings_of_others_are_written_where_the_scale_is_the_same():
    ratings = (
        Rating(response="a", rater="unknown", kind="llm", dimension="rating", value=2.0, range=(1, 5)),
        Rating(response="b", rater="unknown", kind="llm", dimension="rating", value=2.0, range=(0, 10)),
    )
    (row,), dropped = write("distilabel", case(text="q", responses="ab", ratings=ratings, ranking=None))
    assert row["ratings"] == [2.0, None]
    assert dropped["ratings"] == 1


def test_a_conversation_is_another_shape():
    turns = tuple(Message(role=role, content="x") for role in ("user", "assistant", "user"))
    one = case(responses="ab", ranking=None)
    rows, dropped = write(
        "distilabel", msgspec.structs.replace(one, prompt=msgspec.structs.replace(one.prompt, messages=turns))
    )
    assert (rows, dropped["cases of another shape"], dropped["earlier turns"]) == ([], 1, 2)


def test_generations_without_ratings_are_not_claimed():
    matches = build("formats", "distilabel").matches
    assert matches(ROW)
    assert not matches({"instruction": "i", "generations": ["a"]})
