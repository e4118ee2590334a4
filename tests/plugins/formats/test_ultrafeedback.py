import pytest

from format_rows import read
from steelyard.core.errors import RecordError

ASPECTS = ("instruction_following", "honesty", "truthfulness", "helpfulness")


def completion(ratings="1111", overall=10, **other):
    annotations = {
        aspect: {"Rating": "N/A" if rating == "-" else rating, "Rationale": f"因为 {aspect}"}
        for aspect, rating in zip(ASPECTS, ratings, strict=True)
    }
    return {
        "model": "m",
        "response": f"答 {ratings} {overall}",
        "annotations": annotations,
        "overall_score": overall,
        **other,
    }


def row(*completions, **other):
    return {
        "source": "sharegpt",
        "instruction": "问",
        "models": [one["model"] for one in completions],
        "completions": list(completions),
        "correct_answers": ["None"],
        "incorrect_answers": ["None"],
        **other,
    }


def test_aspects_and_scores_are_gpt_4s_ratings_on_their_own_scales():
    (one,), _ = read("ultrafeedback", row(completion("5432", 7.5, **{"fine-grained_score": 3.5})))
    said = {rating.dimension: (rating.value, rating.range) for rating in one.ratings}
    assert said == {
        "instruction_following": (5, (1, 5)),
        "honesty": (4, (1, 5)),
        "truthfulness": (3, (1, 5)),
        "helpfulness": (2, (1, 5)),
        "overall_score": (7.5, (1, 10)),
        "fine-grained_score": (3.5, (1, 5)),
    }
    assert {(rating.rater, rating.kind) for rating in one.ratings} == {("gpt-4", "llm")}
    assert one.ratings[0].meta == {"Rationale": "因为 instruction_following"}
    assert (one.ranking, one.judgments, one.prompt.source) == (None, (), "sharegpt")


TEN = "overall scores of 10 that stand for a 1 (revisions before 40b4365)"
MIDDLING = "overall scores of 10 with middling aspect ratings"


@pytest.mark.parametrize(
    ("ratings", "overall", "warnings"),
    [
        ("1111", 10, {TEN: 1}),
        ("2222", 10.0, {TEN: 1}),
        ("3-1-", 10, {TEN: 1}),
        ("2223", 10, {MIDDLING: 1}),
        ("4444", 10, {MIDDLING: 1}),
        ("5444", 10, {}),
        ("----", 10, {}),
        ("1111", 9, {}),
        ("1111", 1, {}),
    ],
)
def test_a_ten_for_a_one_is_marked_and_counted_and_never_corrected(ratings, overall, warnings):
    given = row(completion(ratings, overall))
    (one,), counted = read("ultrafeedback", given)
    assert counted == warnings
    assert (one.responses[0].meta or {}).get("flagged", "").startswith("overall_score 10") == (TEN in warnings)
    assert [rating.value for rating in one.ratings if rating.dimension == "overall_score"] == [overall]


def test_answers_to_check_against_stand_in_the_prompts_meta():
    given = row(completion(), correct_answers=["a", "b"])
    (one,), _ = read("ultrafeedback", given)
    assert one.prompt.meta == {"correct_answers": ["a", "b"]}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"completions": ["a"]}, r"at completions\[0\]: a completion without its response"),
        ({"completions": [completion(), {"model": "m"}]}, r"at completions\[1\]: a completion without its response"),
        ({"completions": [completion(overall="ten")]}, r"at completions\[0\]: 'overall_score' is not a number"),
        (
            {"completions": [completion() | {"annotations": []}]},
            r"at completions\[0\]: annotations that are not an object",
        ),
        ({"completions": [completion() | {"model": 3}]}, r"at completions\[0\]: a model that is not a text"),
        ({"completions": None}, "lacks 'completions'"),
        ({"instruction": None}, "lacks 'instruction'"),
        ({"models": "m"}, "at models: models that are not a list"),
    ],
)
def test_a_row_of_another_form_is_refused_with_its_place(change, what):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:2.*{what}"):
        read("ultrafeedback", row(completion()), row(completion()) | change)
