import pytest

from chat_server import chatting, preferring, record
from steelyard.core.errors import ConfigError
from steelyard.core.protocols import JudgeModel
from steelyard.io.ledger import open_ledger
from steelyard.plugins.reward_models import build_model, choose_model
from strategies import case


def model(chat, *, ledger=None, **settings):
    return build_model(
        choose_model("llm_judge", {"chat": chat, "judge": {"prompt_language": "en"}, **settings}), ledger=ledger
    )


def at(server):
    return {"base_url": server.url, "model": "m", "num_tries": 1}


def scores(model, *cases):
    return [(line.scores, line.unscored) for line in model.score(cases)]


def test_a_score_is_the_share_of_comparisons_won():
    with chatting(preferring("answer a")) as server:
        ((found, unscored),) = scores(model(at(server)), case(responses="ab"))
        assert (found, unscored) == ({"a": 1.0, "b": 0.0}, {})
        # Between b and c it names neither: their comparisons are not whole, and a's are.
        ((found, unscored),) = scores(model(at(server)), case(responses="abc"))
    assert found == {"a": 1.0, "b": None, "c": None}
    assert unscored == {"b": "unparsed", "c": "unparsed"}


def test_a_judge_that_always_says_the_first_gives_everyone_a_half(tmp_path):
    ((found, _),) = scores(model(record(tmp_path / "r.jsonl", {"text": "[[A]]"})), case(responses="abcd"))
    assert found == dict.fromkeys("abcd", 0.5)


def test_the_best_of_four_and_what_is_more(tmp_path):
    first = model(record(tmp_path / "r.jsonl", {"text": "[[B]]"}), task="best", judge={"orders": "one"})
    ((found, _), (none, reasons)) = scores(first, case("p", "abcd"), case("q", "abcde"))
    assert sorted(found.values()) == [0.0, 0.0, 0.0, 1.0]
    assert set(none.values()) == {None}
    assert set(reasons.values()) == {"more than 4 responses"}


def test_ratings_are_scores(tmp_path):
    lines = [{"contains": ["answer a"], "text": "[[10]]"}, {"contains": ["answer b"], "text": "hm"}, {"text": "[[3]]"}]
    rated = model(record(tmp_path / "r.jsonl", *lines), task="ratings")
    assert scores(rated, case(responses="abc")) == [({"a": 10.0, "b": None, "c": 3.0}, {"b": "unparsed"})]
    assert not rated.compares_pairs


def test_failures_are_unscored_and_asked_again(tmp_path):
    is_broken = True
    with chatting(lambda question: (500, b"") if is_broken else "[[A]]") as server:
        judge = model(at(server), ledger=tmp_path / "l")
        assert scores(judge, case(responses="ab")) == [({"a": None, "b": None}, {"a": "failed", "b": "failed"})]
        is_broken = False
        assert scores(judge, case(responses="ab")) == [({"a": 0.5, "b": 0.5}, {})]
        assert scores(judge, case(responses="ab")) == [({"a": 0.5, "b": 0.5}, {})]
    assert len(server.questions) == 4
    with open_ledger(tmp_path / "l") as ledger:
        assert len(ledger) == 2


def test_it_can_be_asked_about_single_pairs(tmp_path):
    judge = model(record(tmp_path / "r.jsonl", {"text": "[[A]]"}) | {"name": "first"})
    assert isinstance(judge, JudgeModel)
    (answers,) = judge.answers([case(responses="abcd")], [[(0, 3)]])
    (verdict,) = answers[0]["first"].verdicts
    assert {verdict.left, verdict.right} == {"a", "d"}
    assert len(answers) == 1


def test_a_panel_of_judges(tmp_path):
    judges = [
        {"chat": record(tmp_path / f"{name}.jsonl", {"text": text}) | {"name": name}, "judge": {"orders": "one"}}
        for name, text in (("x", "[[A]]"), ("y", "[[B]]"), ("z", "[[A]]"))
    ]
    choice = choose_model("llm_judge", {"judges": judges, "name": "three"})
    assert sorted(choice.inputs()) == [f"model.chat.{number}.path" for number in range(3)]
    panel = build_model(choice)
    assert panel.name == "three"
    (answers,) = panel.answers([case(responses="ab")])
    assert answers[0]["three"].verdicts[0].outcome == answers[0]["x"].verdicts[0].outcome
    with pytest.raises(ConfigError, match="an even number"):
        choose_model("llm_judge", {"judges": judges[:2]})


def test_other_answers_models_do_not_compare(tmp_path):
    assert not isinstance(build_model(choose_model("longer")), JudgeModel)
