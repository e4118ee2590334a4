from steelyard.stages.leaderboard.columns import columns_of

ONE = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 10}
TWO = ONE | {"value": 0.7}


def test_headlines_stand_first_and_groups_of_one_are_left_out():
    found = columns_of(
        {"accuracy": ONE, "exact_match": TWO, "overall": TWO, "by_category": {"only": {"accuracy": ONE}},
         "sections": {"chat": ONE, "safety": TWO}, "baselines": {"longer": {"accuracy": ONE}}}
    )  # fmt: skip
    assert list(found) == [
        ("headline", "overall"), ("headline", "accuracy"), ("headline", "exact_match"), ("sections", "chat"),
        ("sections", "safety"),
    ]  # fmt: skip
    assert found["sections", "safety"] == TWO


def test_a_language_has_its_own_headline_or_its_accuracy():
    by_language = {"zh": {"accuracy": ONE, "exact_match": TWO}, "ar": {"accuracy": TWO, "exact_match": ONE}}
    assert columns_of({"by_language": by_language}) == {("by_language", "zh"): ONE, ("by_language", "ar"): TWO}
    languages = {"zh": {"overall": TWO, "sections": {}}, "ar": {"overall": ONE, "sections": {}}}
    found = columns_of({"by_language": by_language, "languages": languages})
    assert found == {("languages", "zh"): TWO, ("languages", "ar"): ONE}


def test_an_incomplete_language_is_no_column():
    assert columns_of({"languages": {"zh": {"sections": {}, "missing": {"x": "y"}}, "ar": {"overall": ONE}}}) == {}
