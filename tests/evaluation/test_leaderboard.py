import msgspec

from steelyard.evaluation.leaderboard import columns_of
from steelyard.evaluation.summary import EvaluationSummary

ONE = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 10}
TWO = ONE | {"value": 0.7}
REQUIRED = {
    "accuracy": ONE, "accuracy_micro": ONE, "by_category": {}, "baselines": {}, "metric": "steelyard", "pairs": None,
    "tied": {"num_pairs": 0, "share": 0.0}, "weights": {}, "measures": {},
}  # fmt: skip


def columns(**parts):
    found = columns_of(msgspec.convert(REQUIRED | parts, EvaluationSummary))
    return {key: msgspec.to_builtins(estimate) for key, estimate in found.items()}


def groups(**parts):
    return {key: value for key, value in columns(**parts).items() if key[0] != "headline"}


def test_headlines_stand_first_and_groups_of_one_are_left_out():
    baseline = {"accuracy": ONE, "accuracy_micro": ONE, "by_category": {}, "difference": ONE}
    found = columns(
        exact_match=TWO, overall=TWO, by_category={"only": {"accuracy": ONE}},
        sections={"chat": ONE, "safety": TWO}, baselines={"longer": baseline},
    )  # fmt: skip
    assert list(found) == [
        ("headline", "overall"), ("headline", "accuracy"), ("headline", "exact_match"), ("sections", "chat"),
        ("sections", "safety"),
    ]  # fmt: skip
    assert found["sections", "safety"] == TWO


def test_a_language_has_its_own_headline_or_its_accuracy():
    by_language = {"zh": {"accuracy": ONE, "exact_match": TWO}, "ar": {"accuracy": TWO, "exact_match": ONE}}
    assert groups(by_language=by_language) == {("by_language", "zh"): ONE, ("by_language", "ar"): TWO}
    languages = {"zh": {"overall": TWO, "sections": {}}, "ar": {"overall": ONE, "sections": {}}}
    found = groups(by_language=by_language, languages=languages)
    assert found == {("languages", "zh"): TWO, ("languages", "ar"): ONE}


def test_subsets_of_cheemsbench_have_exact_match_and_categories_of_their_own():
    three = ONE | {"n": 3}
    one = {"accuracy": ONE, "exact_match": three}
    subset = one | {"by_category": {"code": {"accuracy": TWO, "exact_match": three}}}
    found = groups(subsets={"open_prompt": subset, "human_instruction": subset}, by_category={"code": one, "chat": one})
    assert list(found) == [
        ("subsets", "open_prompt"), ("subsets", "human_instruction"),
        ("subsets_exact_match", "open_prompt"), ("subsets_exact_match", "human_instruction"),
        ("subset_categories", "open_prompt: code"), ("subset_categories", "human_instruction: code"),
    ]  # fmt: skip
    assert found["subsets_exact_match", "open_prompt"] == three
    assert found["subset_categories", "open_prompt: code"] == TWO


def test_exact_match_that_repeats_accuracy_is_no_column():
    subset = {"accuracy": ONE, "exact_match": ONE}
    assert {group for group, _ in groups(subsets={"a": subset, "b": subset})} == {"subsets"}


def test_half_points_stand_apart():
    required = {"accuracy": ONE, "accuracy_micro": ONE, "by_category": {}}
    half = {"headline": "overall", "overall": TWO, "sections": {"Chat": TWO}, **required}
    found = columns(overall=ONE, policies={"half": half})
    assert found["headline", "overall"] == ONE
    assert (found["half_points", "overall"], found["half_points", "Chat"]) == (TWO, TWO)


def test_an_incomplete_language_is_no_column():
    assert (
        groups(languages={"zh": {"sections": {}, "missing": {"x": "y"}}, "ar": {"overall": ONE, "sections": {}}}) == {}
    )
