"""Sections of the stages between raw judgments and training: each from a run of its stage."""

import json

import msgspec
import pytest

from chat_server import chatting, completion, preferring
from report_sections import only_section, page, panels_of
from steelyard.core.types import Judgment, Response
from steelyard.evaluation.tables import word
from steelyard.io.cases import write_cases
from steelyard.report.page import render
from steelyard.stages.debias import Config as DebiasConfig
from steelyard.stages.debias import debias
from steelyard.stages.judge import Config as JudgeConfig
from steelyard.stages.judge import judge
from steelyard.stages.sample import sample
from steelyard.stages.score import score
from steelyard.stages.supervise import Config as SuperviseConfig
from steelyard.stages.supervise import supervise
from strategies import case
from supervision_files import judged, write


@pytest.fixture
def supervised_cases(tmp_path):
    return write(
        tmp_path / "llm.jsonl",
        [
            judged("p", llm=("a>b", "a>b", "b<c", "a=c", "a?b"), human=("b>a", "b>a")),
            judged("שאלה", llm=("c>a", "a>b", "b>c"), language="he"),
        ],
    )


def test_supervision_shows_rules_thresholds_and_what_was_dropped(supervised_cases, tmp_path):
    # Longer answers win, a before b before c: of six strict judgments three a>b have a margin of 2.
    supervise(supervised_cases, tmp_path / "out", SuperviseConfig(min_margin=2.0), model="longer")
    section, sentences = only_section(tmp_path / "out")
    assert sentences[0].key == "say_supervised"
    assert (sentences[0].values["kept"], sentences[0].values["judgments"], sentences[0].values["share"]) == (
        "3", "6", "50.0%"
    )  # fmt: skip
    # People judge the pair a, b the other way round.
    assert sentences[1].values["precision"] == "0.0%"
    panels = panels_of(section)
    bars = panels[word("dropped_by_rule")].figure.spec["data"]["values"]
    assert [(bar["row"], bar["number"]) for bar in bars][:2] == [
        (word("kept"), 3), (word("rule_disagrees", "disagrees"), 2)
    ]  # fmt: skip
    curve = panels[word("by_threshold")].tables[0].table
    assert [row[1:3] for row in curve.rows if row[0] == "2.000"] == [("3", "50.0%")]  # of six strict judgments
    first, *others = panels[word("dropped_examples")].examples
    assert len(others) == 2  # ties and unparsed judgments have no margin
    assert first.about.values == {
        "judge": "gpt", "rule": word("rule_below_min_margin", "below min_margin"), "margin": "1.000"
    }  # fmt: skip
    assert [text for _, text in first.answers] == ["bb", "c"]


def test_without_people_the_precision_is_said_to_be_unknown(tmp_path):
    cases = write(tmp_path / "llm.jsonl", [judged("p", llm=("a>b", "b>c"))])
    supervise(cases, tmp_path / "out", SuperviseConfig(), model="longer")
    section, sentences = only_section(tmp_path / "out")
    assert [sentence.key for sentence in sentences] == ["say_supervised", "say_no_precision"]
    assert panels_of(section)[word("by_threshold")].note == "note_by_threshold_coverage"


def lengths(id, better, worse, **fields):
    """A case whose first response is the better one, of these lengths."""
    made = case(id, "ab", ranking=(("a",), ("b",)), **fields)
    texts = (Response(id="a", text="x" * better), Response(id="b", text="y" * worse))
    return msgspec.structs.replace(made, responses=texts)


def test_debiasing_shows_the_balance_of_each_group_and_accuracy_on_matched_pairs(tmp_path):
    cases = [lengths(f"z{n}", 9, 4, category=("数学",)) for n in range(3)] + [lengths("z3", 4, 9, category=("数学",))]
    cases += [lengths("c0", 5, 5, category=("code",)), lengths("c1", 7, 3, category=("code",)), lengths("c2", 3, 7)]
    write_cases(tmp_path / "cases.jsonl", cases)
    score(tmp_path / "cases.jsonl", tmp_path / "scores", model="longer")
    scores = tmp_path / "scores" / "scores.jsonl"
    debias(tmp_path / "cases.jsonl", tmp_path / "out", DebiasConfig(within="category"), scores=scores)
    section, sentences = only_section(tmp_path / "out")
    # Of mathematics one pair stays on each side, of code the pair of equal lengths, and none of the last.
    assert sentences[0].values["kept"] == "3"
    assert sentences[0].values["before"] == "66.7%"  # 4 of 6 with a difference
    assert sentences[0].values["after"] == "50.0%"
    balance, accuracy = section.panels
    rows = {row[0]: row for row in balance.tables[0].table.rows}
    assert rows["数学"] == ("数学", "75.0%", "3", "1", "0", "50.0%", "1", "1", "0")
    assert rows["code"] == ("code", "100.0%", "1", "0", "1", "\N{EN DASH}", "0", "0", "1")
    # On the matched pair both lengths are equal, and equal scores are wrong.
    matched = next(row for row in accuracy.tables[0].table.rows if row[0] == word("length_matched_pairs"))
    assert (matched[1], matched[3], matched[4], matched[6]) == ("0.0%", "1", "0.0%", "1")


def test_debiasing_that_leaves_no_side_says_so(tmp_path):
    write_cases(tmp_path / "cases.jsonl", [lengths(f"z{n}", 9, 4) for n in range(3)] + [lengths("same", 5, 5)])
    debias(tmp_path / "cases.jsonl", tmp_path / "out", DebiasConfig())
    (sentence,) = only_section(tmp_path / "out")[1]
    assert sentence.key == "say_debiased_no_side"
    assert (sentence.values["kept"], sentence.values["before"]) == ("1", "100.0%")


def test_judging_shows_verdicts_costs_and_the_replies_without_a_verdict(tmp_path):
    write_cases(tmp_path / "cases.jsonl", [case("p", "abc", text="问题", language="zh", judgments=["a>b"])])
    with chatting(preferring("answer c")) as server:
        chat = {"base_url": server.url, "model": "m", "num_tries": 1, "workers": 1}
        config = JudgeConfig(chat=chat, judge={"prompt_language": "en"}, num_resamples=20, price=(2.0, 10.0))
        judge(tmp_path / "cases.jsonl", tmp_path / "out", config)
    section, sentences = only_section(tmp_path / "out")
    # Two of three pairs have c, which is preferred; of a and b both orders are unparsed.
    assert (sentences[0].values["verdicts"], sentences[0].values["missing"]) == ("3", "33.3%")
    panels = panels_of(section)
    (row,) = panels[word("verdicts")].tables[0].table.rows
    assert row[:2] == ("m", "3")
    tokens = panels[word("tokens_and_cost")].tables[0].table.rows[0]
    # Six replies of 7 and 3 tokens: 42 for 2 a million, and 18 for 10.
    assert tokens[1:6] == ("6", "42", "18", "0", "0.0003")
    examples = panels[word("unparsed_examples")].examples
    (example,) = examples
    assert example.answers[0] == (word("reply"), "Neither.")
    assert {text for _, text in example.answers[1:]} == {"answer a", "answer b"}
    assert example.prompt == "问题"


def test_sampling_shows_outcomes_lengths_costs_and_meetings(tmp_path):
    write_cases(tmp_path / "cases.jsonl", [case(f"p{number}", "", text=str(number)) for number in range(4)])

    def answer(question):
        number = int(question["messages"][-1]["content"])
        return completion("half", "length") if question["model"] == "b" and number else "x" * (number + 1)

    with chatting(answer) as server:
        chats = [{"base_url": server.url, "model": name, "num_tries": 1} for name in "ab"]
        plan = {"models": [{"chat": chats[0], "price": [2.0, 10.0]}, {"chat": chats[1]}]}
        (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        sample(tmp_path / "cases.jsonl", tmp_path / "plan.json", tmp_path / "out")
    section, sentences = only_section(tmp_path / "out")
    # Of eight samples three were cut off; to the first prompt both models wrote one x.
    keys = [sentence.key for sentence in sentences]
    assert keys == ["say_sampled", "say_repeated", "say_sampling_cost", "say_equal_meetings"]
    said = sentences[0].values
    assert (said["responses"], said["planned"], said["missing"]) == ("5", "8", "37.5%")
    assert sentences[1].values["repeated"] == "1"
    assert sentences[3].values["most"] == "4"
    panels = panels_of(section)
    rows = panels[word("samples_by_model")].tables[0].table.rows
    assert rows == (("a", "4", "4", "4", "0", "0", "0", "0", "0"), ("b", "4", "4", "1", "1", "0", "3", "0", "0"))
    assert panels[word("lengths_by_model")].tables[0].table.rows[0] == ("a", "4", "1", "2", "4")
    # Four replies of 7 and 3 tokens: 28 for 2 a million, and 12 for 10.
    assert [row[1:6] for row in panels[word("tokens_and_cost")].tables[0].table.rows] == [
        ("4", "28", "12", "0", "0.0002"), ("4", "28", "12", "0", "\N{EN DASH}"),
    ]  # fmt: skip
    assert panels[word("responses_per_prompt")].tables[0].table.rows == (("1", "4"),)


def test_ratings_are_counted_and_replies_without_a_number_shown(tmp_path):
    write_cases(tmp_path / "cases.jsonl", [case("p", "ab", text="q", judgments=["a>b"])])

    def answer(question):
        return "[[7]]" if "answer a" in question["messages"][-1]["content"] else "<b>good</b>"

    with chatting(answer) as server:
        chat = {"base_url": server.url, "model": "m", "num_tries": 1, "workers": 1}
        config = JudgeConfig(task="ratings", chat=chat, judge={"prompt_language": "en"}, num_resamples=20)
        judge(tmp_path / "cases.jsonl", tmp_path / "out", config)
    section, sentences = only_section(tmp_path / "out")
    assert sentences[0].key == "say_rated"
    assert (sentences[0].values["ratings"], sentences[0].values["none"]) == ("1", "1")
    assert panels_of(section)[word("ratings_given")].tables[0].table.rows == (("m", "7", "1"),)
    (example,) = panels_of(section)[word("unparsed_examples")].examples
    assert example.answers[0][1] == "<b>good</b>"
    assert "<b>good</b>" not in render(page(tmp_path / "out"))


def test_one_reply_of_two_orders_without_a_verdict_is_shown_alone(tmp_path):
    judgments = [Judgment(left="a", right="b", verdict="left", judge="x", kind="human")]
    write_cases(tmp_path / "cases.jsonl", [case("p", "ab", text="q", judgments=judgments)])

    def answer(question):
        first = question["messages"][-1]["content"].split("answer A", 1)[1].split("answer B", 1)[0]
        return "[[A]]" if "answer a" in first else "cannot say"

    with chatting(answer) as server:
        chat = {"base_url": server.url, "model": "m", "num_tries": 1, "workers": 1}
        judge(
            tmp_path / "cases.jsonl",
            tmp_path / "out",
            JudgeConfig(chat=chat, judge={"prompt_language": "en"}, num_resamples=20),
        )
    section, _ = only_section(tmp_path / "out")
    (example,) = panels_of(section)[word("unparsed_examples")].examples
    assert [text for _, text in example.answers[1:]] == ["answer b", "answer a"]
