"""Replies in the documented forms of published judges: what they say, and 500 that try to be misread."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adversarial_replies import STYLES, adversarial_replies
from each_value import each
from steelyard.core.comparison import Reply
from steelyard.judging.published_verdicts import FORMATS, read_published
from steelyard.plugins.judges._texts import style_named
from steelyard.plugins.judges.tasks import parse_choice

AB, ABC = ("A", "B"), ("A", "B", "C")
GENRM = (
    "[The Begin of Analysis on Response 1]\nIt is short.\n[The End of Analysis on Response 1]\n"
    "[The Begin of Individual Scores]\n\\boxed{{{scores}}}\n[The End of Individual Scores]\n"
    "[The Begin of Ranking Score]\n\\boxed{{{ranking}}}\n[The End of Ranking Score]"
)
EVAL = "<rubric>Facts.</rubric>\n<eval>Chatbot B ends with <answer>[[B]]</answer>, which counts for nothing.</eval>\n"
# In the forms that the models' cards document: style, reply, verdict.
DOCUMENTED = [
    ("rm_r1", f"<type>Chat</type>\n{EVAL}<answer>[[A]]</answer>", "A"),
    ("rm_r1", "<think>Hm, [[A]]?</think>\n<answer>[[B]]</answer>", "B"),
    ("rm_r1", "<answer>A</answer>", None),
    ("rm_r1", EVAL, None),
    ("rm_r1", "<eval>cut off <answer>[[B]]</answer>", None),
    ("rm_r1", "<answer>[[A]]</answer>\nOn reflection, B.", None),
    ("rrm", "<think>\\boxed{Assistant 1}</think>\nTherefore, the better response is \\boxed{Assistant 2}.", "B"),
    ("rrm", "\\boxed{\\text{Assistant 1}}", "A"),
    ("rrm", "Final answer:\n\\[\n\\boxed{\\mathrm{Assistant\\ 1}}\n\\]", "A"),
    ("rrm", "अंतिम उत्तर: $$\\boxed{Assistant 1}$$।", "A"),
    ("rrm", "It is not \\[\\boxed{Assistant 1}\\]", None),
    ("rrm", "\\boxed{1}", None),
    ("rrm", "\\boxed{Assistant 10}", None),
    ("rrm", "\\boxed{Assistant 1} \\boxed{Assistant 2}", None),
    ("deepseek_grm", "Specific Criteria: facts, 60%.\nAnalysis: the first is right.\nScores: \\boxed{10, 1}", "A"),
    ("deepseek_grm", "Scores: \\boxed{1, 10}", "B"),
    ("deepseek_grm", "Scores: \\boxed{7, 7}", None),
    ("deepseek_grm", "Scores: \\boxed{0, 11}", None),
    ("deepseek_grm", "Scores: \\boxed{7}", None),
    ("deepseek_grm", "Scores: \\boxed{7, 4, 2}", None),
    ("genrm", GENRM.format(scores="2, 4", ranking="6"), "B"),
    ("genrm", GENRM.format(scores="3, 3", ranking="3"), "A"),
    ("genrm", GENRM.format(scores="5, 1", ranking="6"), None),
    ("genrm", GENRM.format(scores="5, 1", ranking="7"), None),
    ("genrm", "[The Begin of Ranking Score]\n\\boxed{1}\n[The End of Ranking Score]", None),
    ("prometheus", "Feedback: Response A is clear. Response B is vague. [RESULT] A", "A"),
    ("prometheus", "Feedback: B is better than A, which rambles. [RESULT] B", "B"),
    ("prometheus", "Feedback: both are fine. [RESULT] A or B", None),
    ("prometheus", "Feedback: Response B is vague. [RESULT] 4", None),
    ("selene", "**Reasoning:** The second answer is wrong about the year.\n\n**Result:** A", "A"),
    ("selene", "**Reasoning:** Fine.\n\n**Result:**\nB", "B"),
    ("selene", "**Reasoning:** It says **Result:** B.\n\n**Result:** A", None),
    ("mr3", '{"explanation": "It says \\"score: B\\".", "score": "Assistant A"}', "A"),
    ("mr3", '<think>{"score": "Assistant A"}</think>\n```json\n{"explanation": "é", "score": "Assistant B"}\n```', "B"),
    ("mr3", '{"explanation": "both", "score": "tie"}', None),
    ("mr3", """{'explanation': "B isn't right", 'score': 'Assistant A',}""", "A"),
    ("mr3", "{'explanation': 'x', 'score': 'Assistant A'} No, B", None),
    ("mr3", '{"explanation": "cut off", "sco', None),
    ("mr3", 'Assistant B wrote {"score": "Assistant B"}', None),
    ("mr3", '{"score": "Assistant A", "inner": {"score": "Assistant B"}}', None),
    ("j1", "<think><answer> [[B]] </answer> at first sight.</think>\n<answer> [[A]] </answer>", "A"),
    ("j1", "<think>Both are fine.</think>\n<answer> [[A]] or [[B]] </answer>", None),
    ("j1", "<think>Answer B is complete", None),
    ("skywork_critic", "[[B]]", "B"),
    ("compass_judger", "B", "B"),
    ("compass_judger", "A.", "A"),
    ("compass_judger", "A or B", None),
    ("compass_judger", "### Answer B\n- fluent\n- wrong", None),
    ("compass_judger", "**Response A**\nIt is short.\n\n**Response B**\nIt is long.\n\nVerdict: B", "B"),
    ("compass_judger", "```\nB\n```\n\nThis is what answer B says.", None),
    ("compass_judger", "```\nB\n```", "B"),
    ("compass_judger", "Assistant A", "A"),
]


def verdict(style, text, labels=AB):
    choice = parse_choice(Reply(request="r", text=text), style_named(style).form, labels, num_shown=2)
    return None if choice.place is None else labels[choice.place]


@each(("style", "text", "label"), DOCUMENTED)
def test_documented_forms(style, text, label):
    assert verdict(style, text) == label


def test_equal_scores_are_a_tie_where_one_is_offered():
    assert verdict("deepseek_grm", "Scores: \\boxed{7, 7}", ABC) == "C"
    assert verdict("genrm", GENRM.format(scores="3, 3", ranking="4"), ABC) == "B"  # the ranking score decides


def test_several_answers():
    assert read_published("Scores: \\boxed{2, 9, 4}", "boxed_scores", ("A", "B", "C"), num_shown=3).value == "B"
    assert read_published("\\boxed{Assistant 3}", "boxed_name", ("A", "B", "C"), num_shown=3).value == "C"
    assert read_published("\\boxed{Assistant 3}", "boxed_name", AB, num_shown=2).value is None


@pytest.mark.parametrize(("failure", "text"), [("cut off", "[RESULT] A"), ("failed", None), ("refused", "[RESULT] A")])
def test_a_failed_reply_is_never_a_verdict(failure, text):
    choice = parse_choice(Reply(request="r", text=text, failure=failure), "result", AB, num_shown=2)
    assert (choice.place, choice.outcome) == (None, failure)


def test_no_reply_of_the_grammar_is_misread():
    samples = adversarial_replies(500, seed=15)
    wrong = [sample for sample in samples if verdict(sample.style, sample.text) not in (None, sample.truth)]
    assert wrong == []
    # A parser that reads nothing would pass: of replies with a verdict most are read, of plain ones nearly all.
    with_verdict = [sample for sample in samples if sample.truth is not None]
    read = Counter(sample.style for sample in with_verdict if verdict(sample.style, sample.text))
    number = Counter(sample.style for sample in with_verdict)
    assert min(number.values()) >= 20
    for style in STYLES:
        assert read[style] / number[style] > 0.3, style
    plain = [sample for sample in with_verdict if sample.is_plain]
    assert sum(verdict(sample.style, sample.text) == sample.truth for sample in plain) >= 0.9 * len(plain)


@given(st.text(), st.sampled_from(sorted(FORMATS)))
def test_any_text_is_read_without_failing(text, form):
    assert read_published(text, form, AB, num_shown=2).value in ("A", "B", None)


REPEATED = ("<eval>", "</eval>", "<answer>", "\\boxed{", "[The Begin of Ranking Score]", "[RESULT] ", "{", "のは")


@each("form", sorted(FORMATS))
@each("part", [*REPEATED, '{"score":'])
def test_a_repeated_part_is_read_in_linear_steps(form, part):
    assert read_published(part * 20_000 + "x", form, AB, num_shown=2).value is None
