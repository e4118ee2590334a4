import pytest

from format_rows import read
from steelyard.core.errors import RecordError

TURNS = [{"role": "user", "content": "问", "language": "Chinese"}]
PAIR = {
    "pair_uid": "7",
    "conversation_input": TURNS,
    "chosen": {"llm_name": "m", "answer": "好", "score": 4.5},
    "reject": {"llm_name": "n", "answer": "坏", "score": 1.0},
    "category_path": "Pairwise_set/Helpfulness/Chat/Discussion",
}
BEST = {
    "bon_uid": "7",
    "conversation_input": TURNS,
    "bon_best": {"llm_name": "m", "answer": "好"},
    "loser_list": [{"llm_name": "n", "answer": "坏"}],
    "category_path": "BoN_set/Harmlessness/S1",
}


def test_one_uid_in_both_sets_is_two_cases():
    (pair, best), _ = read("rmb", PAIR, BEST)
    assert [pair.prompt.id, best.prompt.id] == ["Pairwise_set/7", "BoN_set/7"]
    assert (pair.prompt.subset, pair.prompt.category) == ("Pairwise_set", ("Helpfulness", "Chat", "Discussion"))
    assert (best.prompt.language, best.ranking) == ("zh", (("bon_best",), ("loser_list[0]",)))
    # A single loser alone would look like a pair.


def test_a_score_is_a_rating_by_an_unnamed_model():
    (one,), _ = read("rmb", PAIR)
    assert [(rating.response, rating.rater, rating.kind, rating.value) for rating in one.ratings] == [
        ("chosen", "unknown", "llm", 4.5),
        ("reject", "unknown", "llm", 1.0),
    ]


@pytest.mark.parametrize("language", [["zh"], {"code": "zh"}, 3])
def test_a_language_that_is_no_text_is_none(language):
    row = PAIR | {"conversation_input": [{"role": "user", "content": "q", "language": language}]}
    (one,), _ = read("rmb", row)
    assert one.prompt.language is None


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({**PAIR, "reject": {"llm_name": "n"}}, "reject"),
        ({**PAIR, "chosen": {"llm_name": 3, "answer": "x"}}, "chosen"),
        ({**BEST, "loser_list": []}, "loser_list"),
        ({**BEST, "loser_list": [{"llm_name": "n", "answer": "x"}, None]}, r"loser_list\[1\]"),
        ({**PAIR, "bon_best": {"answer": "x"}}, "both sets"),
        ({**PAIR, "conversation_input": "问"}, "conversation_input"),
        ({**PAIR, "category_path": None}, "category_path"),
    ],
)
def test_what_is_wrong_is_named(row, found):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1.*{found}"):
        read("rmb", row)
