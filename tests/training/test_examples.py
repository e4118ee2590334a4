import msgspec
import pytest

import tiny
from steelyard.core.errors import EvidenceError, ModelError
from steelyard.core.types import Case, Message, Pair, Response
from steelyard.networks.conversation import Rendering
from steelyard.ranking.pairs import UNLISTED
from steelyard.training.examples import EvidenceChoice, check_template, make_examples
from steelyard.training.losses import LOSSES
from strategies import case


def make(cases, choice=None, loss="bradley-terry", **settings):
    rendering = Rendering(template=tiny.CHATML, **settings)
    evidence = EvidenceChoice(choice, LOSSES[loss].reads_ties)
    return make_examples(cases, tiny.tokenizer(), rendering, evidence, where="c.jsonl")


def test_only_responses_in_pairs_are_kept_and_the_others_counted():
    made = make([case(ranking=(("a", "b"), ("c",))), case(id="q", ranking=(("a", "b"),)), case(id="r")])
    assert (made.num_in, made.num_pairs, made.num_responses) == (3, 2, 3)
    assert made.dropped == {"no comparable pair": 2}
    assert made.noted == {"responses in no pair": 2 + 5 + 5}
    (example,) = made.examples
    assert {(pair.better, pair.worse) for pair in example.pairs} == {(0, 2), (1, 2)}


def test_listed_pairs_carry_weight_and_margin():
    listed = (Pair(better="c", worse="a", weight=0.5, margin=2.0),)
    (example,) = make([case(ranking=(("a",), ("b",)), pairs=listed)]).examples
    assert [tuple(pair) for pair in example.pairs] == [(1, 0, 0.5, 2.0)]
    assert make([case(ranking=(("a",), ("b",)), pairs=listed)], "tiers").num_pairs == 1


def long_case():
    answers = (
        Response(id="a", text="word " * 90 + "yes"),
        Response(id="b", text="word " * 90 + "no"),
        Response(id="c", text="x"),
    )
    return Case(prompt=case().prompt, responses=answers, ranking=(("a",), ("b",), ("c",)))


def test_answers_over_the_limit_stop_the_run_and_are_named():
    with pytest.raises(
        EvidenceError, match=r"c\.jsonl: 2 answers are longer than 60 tokens, the first: p / a \(\d+ tokens\)"
    ):
        make([long_case()], max_length=60, over_length="refuse")


def test_answers_over_the_limit_are_left_out_with_their_pairs_and_counted_never_cut():
    made = make([long_case(), case(id="q", ranking=(("a",), ("b",)))], max_length=60)
    # Of its three answers one is left, which alone is no pair.
    assert made.dropped == {"every pair has an answer over the limit": 1}
    assert made.noted["answers over the limit, left out"] == 2
    assert made.noted["pairs lost with them"] == 3
    assert made.num_pairs == 1
    own = msgspec.to_builtins(made.length.summary())
    assert (own["num_responses"], own["num_too_long"], own["num_pairs"], own["num_pairs_over"]) == (5, 2, 4, 3)
    assert (own["num_prompts"], own["num_prompts_over"], own["is_cut"]) == (2, 1, False)
    first, second, third = made.length.sentences()
    assert first == "2 of 5 (40.0%) answers are longer than 60 tokens and left out"
    assert second == "3 of 4 (75.0%) pairs are lost with them; 1 of 2 (50.0%) prompts is lost whole"
    longest = own["longest"]
    assert third.startswith(f"to keep them whole: max_length={longest} keeps all; over_length=left")
    whole = make([long_case(), case(id="q", ranking=(("a",), ("b",)))], max_length=longest)
    assert (whole.num_pairs, list(whole.length.sentences())) == (4, [])
    with pytest.raises(
        EvidenceError, match=r"none of 1 case .* without an answer over 60 tokens \(2 are, the first: p / a"
    ):
        make([long_case()], max_length=60)


def test_answers_cut_by_name_are_counted_and_pairs_that_became_equal_are_dropped():
    made = make([long_case()], max_length=60, over_length="right")
    assert made.noted == {"cut answers": 2, "pairs of equal tokens": 1}
    assert list(made.length.sentences())[:2] == [
        "2 of 3 (66.7%) answers are longer than 60 tokens and cut on the right",
        "3 of 3 (100.0%) pairs hold a cut answer; 1 of 1 (100.0%) prompt holds cut answers alone",
    ]
    assert made.num_pairs == 2
    assert all(len(row) <= 60 for row in made.examples[0].rows)


def test_nothing_to_train_on_is_refused():
    with pytest.raises(EvidenceError, match="none of 1 case has a comparable pair"):
        make([case(ranking=(("a", "b"),))])


def test_a_pair_that_weighs_less_than_nothing_is_refused():
    one = case(pairs=(Pair(better="a", worse="b", weight=-1.0),))
    with pytest.raises(EvidenceError, match=r"c\.jsonl: a pair of prompt 'p' weighs -1\.0"):
        make([one])


def test_pairs_without_weight_are_counted_and_not_trained_on():
    # 1e-20 is what a supervisor of large scores believes in a pair: single precision has no such share of a step.
    weights = {"p": 1.0, "q": 0.0, "r": 1e-20}
    cases = [case(id=name, pairs=(Pair(better="a", worse="b", weight=weight),)) for name, weight in weights.items()]
    made = make(cases)
    assert ([example.name for example in made.examples], made.num_pairs) == (["p"], 1)
    assert (made.noted["pairs of weight 0"], made.dropped) == (2, {"no comparable pair": 2})
    with pytest.raises(EvidenceError, match=r"none of 2 cases has a comparable pair: pairs of weight 0 2"):
        make(cases[1:])
    with pytest.raises(EvidenceError, match=r"'p' weighs 1e\+300"):
        make([case(pairs=(Pair(better="a", worse="b", weight=1e300),))])


@pytest.mark.parametrize("margin", [1e308, -1e308, 1e13])
def test_a_margin_that_no_reward_can_reach_is_refused_with_its_prompt(margin):
    with pytest.raises(EvidenceError, match=r"a pair of prompt 'p' has the margin -?1e\+"):
        make([case(pairs=(Pair(better="a", worse="b", margin=margin),))])


def test_the_remedy_for_cases_without_pairs_fits_what_they_have():
    responses = tuple(Response(id=name, text="one") for name in "ab")
    equal = msgspec.structs.replace(case(responses="ab", ranking=(("a",), ("b",))), responses=responses)
    for one, problem, remedy in (
        (equal, "pair: pairs of equal tokens 1", None),
        (case(ranking=(("a", "b"),)), "pair", None),
        (case(judgments=("a=b",)), "pair", "resolve"),
    ):
        with pytest.raises(EvidenceError) as refused:
            make([one])
        assert problem in refused.value.problem
        assert (refused.value.do is None) == (remedy is None)
        assert (remedy or "") in (refused.value.do or "")


def test_ties_are_there_where_the_loss_reads_them():
    one = case(
        judgments=("a=b", "b>c", "a>c"), ranking=(("a", "b"), ("c",)), category=("code", "python"), language="he"
    )
    (plain,) = make([one]).examples
    assert plain.ties == ()
    assert (plain.name, plain.category, plain.language) == ("p", "code", "he")
    tied = make([one], loss="davidson")
    assert [pair[:2] for pair in tied.examples[0].ties] == [(0, 1)]
    assert (tied.num_pairs, tied.noted["ties"]) == (2, 1)


def test_equal_tiers_are_ties_where_the_ranking_is_all_there_is():
    tiers = (("c", "a", "d"), ("b",))
    ranked = case(responses="abcd", ranking=tiers)
    found = make([ranked], loss="davidson")
    assert [pair[:2] for pair in found.examples[0].ties] == [(0, 2), (0, 3), (2, 3)]
    assert (found.num_pairs, found.noted["ties"]) == (3, 3)
    assert make([ranked]).examples[0].ties == ()
    # With judgments a tier may be a cycle or pairs that nobody compared; with listed pairs the others were left out.
    judged = case(responses="abcd", judgments=("a>b", "c>b", "d>b"), ranking=tiers)
    listed = case(responses="abcd", ranking=tiers, pairs=(Pair(better="a", worse="b"),))
    assert [make([one], loss="davidson").noted["ties"] for one in (judged, listed)] == [0, 0]
    assert "ties" not in make([judged]).noted


def test_a_prompt_with_a_tie_alone_teaches_the_losses_that_read_ties_and_no_other():
    both = [case(judgments=("a=b",)), case(id="q", ranking=(("a",), ("b",)))]
    assert make(both).dropped == {"no comparable pair": 1}
    assert len(make(both, loss="rao-kupper").examples) == 2
    with pytest.raises(EvidenceError, match="none of 1 case has a comparable pair"):
        make(both[:1], loss="rao-kupper")


def test_every_loss_reads_the_listed_pairs_and_pairs_that_a_choice_adds_are_counted():
    listed = (Pair(better="b", worse="a", weight=0.5), Pair(better="a", worse="c"))
    one = case(responses="abc", ranking=(("a",), ("b",), ("c",)), pairs=listed)
    for loss in ("bradley-terry", "plackett-luce", "rao-kupper", "davidson"):
        made = make([one], loss=loss)
        assert [tuple(pair)[:3] for pair in made.examples[0].pairs] == [(1, 0, 0.5), (0, 2, 1.0)]
        assert UNLISTED not in made.noted
        assert make([one], "tiers", loss=loss).noted[UNLISTED] == 2  # a > b and b > c


ANSWERS = (Response(id="a", text="one"), Response(id="b", text="another"))
TURNS = (Message(role="system", content=" אנא "), Message(role="user", content="问题？"))
ANSWER_FIRST = "{{ messages[-1].content }}{% for message in messages[:-1] %}{{ message.content }}{% endfor %}"
LENGTH_FIRST = "{{ messages[-1].content | length }}" + tiny.CHATML


def given(answers=ANSWERS):
    return Case(prompt=msgspec.structs.replace(case(id="p").prompt, messages=TURNS), responses=answers)


@pytest.mark.parametrize("template", [tiny.CHATML, tiny.WITH_BOS])
def test_templates_that_write_the_prompt_first_are_taken(template):
    check_template([given()], tiny.tokenizer(), Rendering(template=template))


@pytest.mark.parametrize("template", [ANSWER_FIRST, LENGTH_FIRST])
def test_a_template_that_changes_the_prompt_with_the_answer_is_refused(template):
    with pytest.raises(ModelError, match="p: the chat template changes the prompt with the answer: its system text"):
        check_template([given()], tiny.tokenizer(), Rendering(template=template))


def test_cases_that_show_nothing_are_passed_over():
    rendering = Rendering(template=ANSWER_FIRST)
    check_template([given(ANSWERS[:1])], tiny.tokenizer(), rendering)
    check_template([], tiny.tokenizer(), rendering)


def test_of_several_faults_that_of_the_first_case_is_raised():
    light = case(ranking=(("a",), ("b",)), pairs=(Pair(better="a", worse="b", weight=-1.0),))
    dropped = case(id="q", text="gone", ranking=(("a",), ("b",)))
    template = "{% for message in messages if message.content != 'gone' %}{{ message.content }}{% endfor %}"
    faults = {"weighs -1.0": light, "changes or drops the user text 'gone'": dropped}
    for order in (list(faults), list(faults)[::-1]):
        cases, rendering = map(faults.get, order), Rendering(template=template)
        with pytest.raises((EvidenceError, ModelError), match=order[0]):
            make_examples(cases, tiny.tokenizer(), rendering, EvidenceChoice(), where="c.jsonl")
