import pytest
import torch

import tiny
import tiny_families
from chat_server import record
from steelyard.core.errors import ModelError
from steelyard.core.types import Case, Response, Scores
from steelyard.evaluation.model_self_tests import MOST_ANSWERS, MOST_CASES, SelfTestSummary, sample_of, self_tested
from steelyard.networks.loading import load_network, load_tokenizer
from steelyard.plugins.reward_models import build_model, choose_model
from strategies import case, prompt

DOUBLED = "<s><s>" + tiny.CHATML
CASES = [
    Case(
        prompt=prompt(f"p{index}", text, language=language),
        responses=tuple(Response(id=name, text=name * (7 * index + place + 1)) for place, name in enumerate("abc")),
    )
    for index, (text, language) in enumerate([("你好", "zh"), ("hi", "en"), ("مرحبا", "ar"), ("שלום", "he")])
]


class Outside:
    """A model as a person might plug it in: a number for each answer by a rule."""

    def __init__(self, rule):
        self.rule = rule

    def score(self, cases):
        for asked in list(cases):
            yield Scores(prompt=asked.prompt.id, language=asked.prompt.language, scores=self.rule(asked))

    def protocol(self):
        return {"model": "outside", "dtype": "float32"}


class Unmasked:
    """A real network scored in one batch without telling padding from text: the trap of many scripts."""

    def __init__(self, folder):
        self.network, _ = load_network(folder, dtype="float32")
        self.tokenizer = load_tokenizer(folder)

    def score(self, cases):
        cases = list(cases)
        texts = [[(asked.prompt.messages[0].content + one.text) for one in asked.responses] for asked in cases]
        rows = self.tokenizer([text for own in texts for text in own], padding=True, return_tensors="pt").input_ids
        with torch.inference_mode():
            rewards = iter(self.network(rows, torch.ones_like(rows, dtype=torch.bool)).tolist())
        for asked in cases:
            yield Scores(prompt=asked.prompt.id, scores={one.id: next(rewards) for one in asked.responses})

    def protocol(self):
        return {"model": "unmasked", "dtype": "float32"}


def lengths(case):
    return {one.id: float(len(one.text or "")) for one in case.responses}


def built(kind, **settings):
    return build_model(choose_model(kind, settings))


def states(record):
    return {name: test.state for name, test in record.tests.items()}


def test_the_sample_holds_the_shortest_the_longest_and_each_language_and_no_labels():
    many = [case(f"m{index}", "abcde", text="x" * (50 + index), language="en", ranking=(("a",), ("b",))) for index in
            range(40)]  # fmt: skip
    found = sample_of([*CASES, *many, Case(prompt=prompt("empty"), responses=())])
    assert [one.prompt.id for one in found.cases][:2] == ["p0", "m39"]
    assert {one.prompt.language for one in found.cases} == {"zh", "en", "ar", "he"}
    assert len(found.cases) <= MOST_CASES
    assert all(len(one.responses) == MOST_ANSWERS and one.ranking is None for one in found.cases)
    assert sample_of([]).cases == ()


def test_a_whole_classifier_passes_every_test_with_figures(tmp_path):
    model = built(tiny.save_classifier(tmp_path / "model", template=tiny.WITH_BOS))
    record = self_tested(model, CASES, name="tiny")
    assert record.state == "passed"
    assert (record.num_cases, record.num_answers) == (4, 8)
    assert states(record) == dict.fromkeys(
        ("finite", "alone", "order", "beginning_mark", "last_token", "trained_head", "padding_side", "packing",
         "same_bits", "length"), "passed"
    )  # fmt: skip
    alone = record.tests["alone"].figures
    assert 0 <= alone["largest_difference"] <= alone["tolerance"]
    assert record.tests["length"].figures["by_language"]["zh"] == {"num_too_long": 0, "num_answers": 3}


@pytest.mark.parametrize("family", sorted(tiny_families.FAMILIES))
def test_the_families_pass(tmp_path, family):
    record = self_tested(built(family, path=tiny_families.FAMILIES[family](tmp_path / "model")), CASES, name=family)
    assert "failed" not in states(record).values()
    assert states(record)["alone"] == states(record)["order"] == "passed"


def test_a_policy_that_is_its_own_reference_gives_no_reward(tmp_path):
    policy, other = tiny.save_base(tmp_path / "policy"), tiny.save_base(tmp_path / "other", seed=1)
    assert (
        states(self_tested(built("implicit", path=policy, reference=other), CASES, name="x"))["reference"] == "passed"
    )
    with pytest.raises(ModelError, match="policy and reference are the same model"):
        self_tested(built("implicit", path=policy, reference=policy), CASES, name="x")


@pytest.mark.parametrize(
    ("rule", "failing", "said"),
    [
        (lambda case: {one.id: float(place) for place, one in enumerate(case.responses)}, "alone", "rounding allows"),
        (lambda case: {one.id: float("nan") for one in case.responses}, "finite", "8 of 8 scores are NaN"),
        (lambda case: lengths(case) | {case.responses[0].id: float("inf")}, "finite", "4 of 8 scores are NaN"),
        (
            lambda case: {one.id: len(one.text) + 10.0 * len(case.responses) for one in case.responses},
            "alone",
            "by itself",
        ),
    ],
)
def test_a_broken_model_is_stopped_by_the_test_that_is_named(rule, failing, said):
    with pytest.raises(ModelError) as caught:
        self_tested(Outside(rule), CASES, name="broken")
    assert f"{failing}: " in caught.value.problem
    assert said in caught.value.problem
    assert "self_test=false" in caught.value.do


def test_a_model_that_remembers_what_it_saw_before_depends_on_the_order():
    seen = []

    def rule(case):
        seen.append(case)
        return {one.id: float(len(one.text) + len(seen) * 3) for one in case.responses}

    with pytest.raises(ModelError, match="order: prompt"):
        self_tested(Outside(rule), CASES, name="broken")


def test_a_batch_without_a_mask_is_found(tmp_path):
    folder = tiny.save_classifier(tmp_path / "model")
    with pytest.raises(ModelError, match="alone: prompt 'p"):
        self_tested(Unmasked(folder), CASES, name="unmasked")


def test_a_model_with_weights_that_are_not_numbers_is_found(tmp_path):
    spoilt = built(tiny.save_classifier(tmp_path / "model"))
    with torch.no_grad():
        spoilt.network.head.weight[0, 3] = float("nan")
    with pytest.raises(ModelError, match="finite: 8 of 8 scores are NaN"):
        self_tested(spoilt, CASES, name="spoilt")


def test_a_head_of_zeros_is_found(tmp_path):
    with pytest.raises(ModelError, match="trained_head: all of the head's weights are 0"):
        self_tested(built(tiny.save_classifier(tmp_path / "model", spread=0.0)), CASES, name="zero")


def test_a_template_that_doubles_the_beginning_is_stopped(tmp_path):
    with pytest.raises(ModelError, match="two BOS tokens"):
        self_tested(built(tiny.save_classifier(tmp_path / "model", template=DOUBLED)), CASES, name="doubled")


def test_answers_too_long_for_the_model_are_counted_by_language(tmp_path):
    folder = tiny.save_classifier(tmp_path / "model")
    long = [*CASES, case("long", "ab", text="一二三" * 200, language="zh")]
    refusing = build_model(choose_model(folder, {"max_length": 200, "over_length": "refuse"}))
    with pytest.raises(ModelError, match=r"length: 2 of 14 answers are longer than 200 tokens \(zh 2; the longest has"):
        self_tested(refusing, long, name="short")
    model = build_model(choose_model(folder, {"max_length": 200, "over_length": "left"}))
    figures = self_tested(model, long, name="cutting").tests["length"].figures
    assert figures["by_language"]["zh"] == {"num_too_long": 2, "num_answers": 5}
    assert figures["num_too_long"] == 2
    counted = self_tested(build_model(choose_model(folder, {"max_length": 200})), long, name="short")
    assert counted.tests["length"].state == "passed"
    assert counted.tests["length"].why.endswith("and get no score")


def test_models_that_compare_answers_and_models_that_are_asked_are_left_alone(tmp_path):
    record_of_first = self_tested(built("first"), CASES, name="first")
    assert states(record_of_first) == {"finite": "passed", "alone": "not applicable", "order": "not applicable"}
    panel = {"members": ["markup", "longer"]}
    assert states(self_tested(built("panel", **panel), CASES, name="panel"))["alone"] == "not applicable"
    scaled = self_tested(built("panel", **panel, combine="scale"), CASES, name="panel")
    assert states(scaled)["alone"] == "passed"
    asked = built("llm_judge", chat=record(tmp_path / "replies.jsonl", {"text": "[[A]]"}))
    assert self_tested(asked, CASES, name="judge").state == "not applicable"


def test_switched_off_is_recorded():
    broken = Outside(lambda case: {one.id: float("nan") for one in case.responses})
    assert self_tested(broken, CASES, name="broken", is_wanted=False) == SelfTestSummary(state="off")
    assert self_tested(broken, [], name="broken").state == "not applicable"
