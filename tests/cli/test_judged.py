from steelyard.cli.judged import judge_lines, policy_lines

NONE = {"value": None, "low": None, "high": None, "n": 0}


def value(number, n=10):
    return {"value": number, "low": number - 0.1, "high": number + 0.1, "n": n}


def test_a_judge_in_three_lines():
    own = {"outcomes": {"left": 7, "cut off": 1}, "inconsistent": value(0.25), "first_preferred": value(0.6, 1200)}
    assert list(judge_lines({"m": own})) == [
        "m: left 7, cut off 1",
        "  inconsistent between orders: 25.0% [15.0%, 35.0%] of 10",
        "  first one preferred: 60.0% [50.0%, 70.0%] of 1,200",
    ]


def test_ratings_have_no_orders():
    own = {"outcomes": {}, "ratings": {"3": 1, "10": 2}, "inconsistent": NONE, "first_preferred": NONE}
    assert list(judge_lines({"m": own})) == ["m: no verdicts", "  ratings: 3: 1, 10: 2"]


def summary(accuracy):
    return {
        "outcomes": {"num_pairs": 5, "win": 3, "cut_off": 2, "failed": 0, "by_language": {}},
        "accuracy": accuracy,
        "policies": {
            "wrong": {"accuracy": value(0.6), "exact_match": value(0.5)},
            "half": {"accuracy": value(0.8)},
            "right": {"accuracy": value(1.0), "exact_match": value(1.0)},
        },
        "judges": {},
    }


def test_policies_side_by_side():
    assert list(policy_lines(summary(value(0.6)))) == [
        "of 5 pairs: win 3, cut off 2",
        "  ties and missing verdicts wrong: accuracy 60.0% [50.0%, 70.0%], exact match 50.0% [40.0%, 60.0%]",
        "  ties and missing verdicts half: accuracy 80.0% [70.0%, 90.0%]",
        "  ties and missing verdicts right: accuracy 100.0% [90.0%, 110.0%], exact match 100.0% [90.0%, 110.0%]",
    ]


def test_without_headline_there_is_a_range():
    said = list(policy_lines(summary(NONE)))
    assert said[1].startswith("no headline")
    assert "between 60.0% and 100.0%" in said[2]


def test_scores_have_no_outcomes():
    assert list(policy_lines({"accuracy": NONE})) == []
