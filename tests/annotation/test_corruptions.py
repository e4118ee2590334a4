"""Each kind of worse answer does what it says, on answers in scripts of all kinds."""

from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.annotation.corruptions import (
    DEGRADATIONS,
    CorpusEntry,
    Draft,
    DrawnDegradation,
    Material,
    Phrases,
    code_switched,
    draw_degradations,
    evasive,
    garbled,
    gold_case,
    incomplete,
    off_topic,
    padded_out,
    truncated,
    write_drafts,
    wrong_fact,
)
from steelyard.core.checks import content_id
from steelyard.core.errors import ConfigError
from steelyard.core.types import Message

EN = Phrases(
    joint=" ",
    refusals=("No comment.", 'About "{topic}" I say nothing.'),
    hedges=("It depends.", "Who knows.", 'Hard to say of "{topic}".'),
    fillers=("This matters.", "Read on."),
    repeats=("Again, ", "As I said, "),
)
ZH = Phrases(joint="", refusals=("不谈。",), hedges=("看情况。", "难说。"), fillers=("很重要。",), repeats=("再说，",))


def entry(id, answer, facts, *, language="en", category="code", question="How do I sort a list in Python?"):
    return CorpusEntry(
        id=id,
        language=language,
        category=(category,),
        messages=(Message(role="user", content=question),),
        answer=answer,
        facts=facts,
    )


SORT = entry(
    "sort",
    "Call sorted on it. It returns a new list.\n\n"
    "```python\nprint(sorted([2, 1]))\n```\n\nThe old list stays as it was. 🙂",
    (("a new list", "the old list"), ("sorted([2, 1])", "sort([2, 1])"), ("stays as it was", "is emptied")),
)
RIVER = entry("river", "The Nile. It ends in Egypt.", (("Nile", "Rhine"),), category="knowledge")
SAGE = entry("孔", "孔子，鲁国人。他讲仁。", (("鲁国", "齐国"),), language="zh", question="谁是孔子？他说过什么话？")
SORTING = Material(SORT, EN, (RIVER,), (SAGE,))
severities = st.floats(0, 1)
seeds = st.integers(0, 2**32)


@pytest.mark.parametrize(("severity", "count"), [(0.0, 1), (0.5, 2), (1.0, 3)])
def test_wrong_facts_are_as_many_as_the_severity_says_and_nothing_else_changes(severity, count):
    text = wrong_fact(SORTING, severity, np.random.default_rng(0))
    replaced = [(right, wrong) for right, wrong in SORT.facts if right not in text]
    assert len(replaced) == count
    for right, wrong in replaced:
        text = text.replace(wrong, right, 1)
    assert text == SORT.answer


def test_the_wrong_facts_vary():
    found = {wrong_fact(SORTING, 0.0, np.random.default_rng(seed)) for seed in range(30)}
    assert len(found) == 3


def test_off_topic_is_another_prompts_answer():
    assert off_topic(SORTING, 0.5, np.random.default_rng(0)) == RIVER.answer


@given(severities, seeds)
def test_what_is_truncated_is_a_beginning_that_breaks_off_in_a_word(severity, seed):
    text = truncated(SORTING, severity, np.random.default_rng(seed))
    assert SORT.answer.startswith(text)
    assert text[-1].isalnum()
    assert len(text) <= len(SORT.answer) * (0.8 - 0.45 * severity) + 4


def test_a_text_without_letters_is_truncated_to_its_first_sign():
    signs = SORTING._replace(entry=entry("s", "🙂🙂🙂🙂", (("x", "y"),)))
    assert truncated(signs, 1.0, np.random.default_rng(0)) == "🙂"


@given(seeds)
def test_garbling_all_keeps_nearly_all_signs_and_loses_their_order(seed):
    text = garbled(SORTING, 1.0, np.random.default_rng(seed))
    assert text != SORT.answer
    before, after = Counter("".join(SORT.answer.split())), Counter("".join(text.split()))
    # Each stretch of twelve units gains or loses one unit, here of at most seven letters.
    num_windows = -(-len(SORT.answer) // 12)
    assert ((before - after) + (after - before)).total() <= 7 * num_windows


def test_garbled_chinese_moves_single_characters():
    long = "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。"
    material = Material(entry("诗", long, (("春", "秋"),), language="zh"), ZH, (SAGE,), (SORT,))
    text = garbled(material, 1.0, np.random.default_rng(1))
    assert text != long
    assert Counter(text).keys() <= Counter(long).keys()


@given(severities, seeds)
def test_evasions_are_made_of_the_phrases_and_refuse_from_one_half_on(severity, seed):
    text = evasive(SORTING, severity, np.random.default_rng(seed))
    topic = "How do I sort a list in Python"
    refusals = [phrase.replace("{topic}", topic) for phrase in EN.refusals]
    hedges = [phrase.replace("{topic}", topic) for phrase in EN.hedges]
    assert any(text.startswith(phrase) for phrase in (refusals if severity >= 0.5 else hedges))
    for phrase in sorted(refusals + hedges, key=len, reverse=True):
        text = text.replace(phrase, "")
    assert not text.strip()


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("长江发源于哪里，最后流到哪个海？", "长江发源于哪里"),
        ("小赵：周六爬山？", "小赵：周六爬山"),
        ("我想对同事说“你写得太乱了，重写”，怎么说？", "我想对同事说"),
        ("“行”字有几个读音？", "‘行’字有几个读音"),
        ("把“我们人手不够，晚两天”改成公函。", "把我们人手不够"),
        ("Is 42.195 km long? Why?", "Is 42.195 km long"),
        (
            "Thanks. Can you give me three practice sentences now?",
            "Thanks. Can you give me three practice sentences now",
        ),
        ("word " * 14, "word " * 12 + "…"),
    ],
)
def test_a_topic_is_a_whole_clause_or_whole_words(question, topic):
    material = SORTING._replace(entry=entry("t", "An answer.", (("An", "No"),), question=question))
    phrases = msgspec.structs.replace(EN, hedges=("<{topic}>",))
    assert evasive(material._replace(phrases=phrases), 0.0, np.random.default_rng(0)) == f"<{topic}>"


def test_what_is_incomplete_lacks_whole_sentences_first_those_that_hold_facts():
    sentences = ("Call sorted on it.", "It returns a new list.", "The old list stays as it was.", "🙂")
    lacking = set()
    for seed in range(10):
        one, half = (incomplete(SORTING, severity, np.random.default_rng(seed)) for severity in (0.0, 1.0))
        lacking.add(tuple(sentence for sentence in sentences if sentence not in one))
        # Four sentences beside the code block, two of which hold facts.
        assert [sentence for sentence in sentences if sentence not in half] == [sentences[1], sentences[2]]
        assert "```python\nprint(sorted([2, 1]))\n```" in half
    assert lacking == {(sentences[1],), (sentences[2],)}


def test_an_incomplete_list_is_numbered_without_a_gap():
    answer = "Do this:\n1. One is first.\n2. Two is next.\n3. Three is last."
    material = SORTING._replace(entry=entry("l", answer, (("Two", "Ten"),)))
    assert incomplete(material, 0.0, np.random.default_rng(0)) == "Do this:\n1. One is first.\n2. Three is last."


@given(severities, seeds)
def test_padding_adds_what_it_must_and_keeps_every_sentence_in_order(severity, seed):
    text = padded_out(SORTING, severity, np.random.default_rng(seed))
    assert len(text) >= len(SORT.answer) * (1.25 + 0.6 * severity) - 1
    position = -1
    for sentence in ("Call sorted on it.", "It returns a new list.", "```python\nprint(sorted([2, 1]))\n```", "🙂"):
        position = text.find(sentence, position + 1)
        assert position >= 0, f"{sentence!r} is gone or out of order: nothing may stand inside the code"


@given(severities, seeds)
def test_code_switching_puts_in_whole_foreign_sentences(severity, seed):
    text = code_switched(SORTING, severity, np.random.default_rng(seed))
    assert "孔子，鲁国人。" in text or "他讲仁。" in text
    assert any(
        sentence in text for sentence in ("Call sorted on it.", "It returns a new list.", "stays as it was. 🙂", "```")
    )


@pytest.mark.parametrize("kind", DEGRADATIONS)
@given(severity=severities)
def test_qualities_fall_with_severity_below_that_of_a_good_answer(kind, severity):
    rule = DEGRADATIONS[kind]
    assert 0 < rule.worst <= rule.best < 1
    # On the straight line between both ends: a share of the way down that is the severity.
    assert rule.best - rule.quality(severity) == pytest.approx(severity * (rule.best - rule.worst), abs=1e-12)


@pytest.mark.parametrize("kind", DEGRADATIONS)
def test_a_worse_answer_depends_on_the_generator_alone(kind):
    made = [DEGRADATIONS[kind].make(SORTING, 0.7, np.random.default_rng(5)) for _ in range(2)]
    assert made[0] == made[1] != SORT.answer
    assert made[0].strip()


KINDS = ("wrong_fact", "truncated", "garbled", "evasive")
PHRASES = Phrases(joint=" ", refusals=("No.",), hedges=("Maybe.",), fillers=("Indeed.",), repeats=("Again, ",))
ENTRY = CorpusEntry(
    id="w",
    language="en",
    category=("knowledge", "physics"),
    messages=(Message(role="user", content="When does water boil?"),),
    answer="At 100 degrees, at sea level. Higher up it boils at less.",
    facts=(("100", "50"),),
)
MATERIAL = Material(ENTRY, PHRASES, (ENTRY,), (ENTRY,))
A, B, C = Draft("甲", "good_answer", 1.0), Draft("乙", "truncated", 0.5), Draft("丙", "garbled", 0.5)


def test_faults_are_of_different_kinds_all_alike_likely():
    rng = np.random.default_rng(0)
    drawn = [draw_degradations(KINDS, 2, rng) for _ in range(2000)]
    assert all(len({fault.kind for fault in faults}) == 2 for faults in drawn)
    counted = Counter(fault.kind for faults in drawn for fault in faults)
    # 1000 of 2000 prompts expected for each of four kinds, standard deviation 22.4
    assert all(abs(counted[kind] - 1000) < 5 * 22.4 for kind in KINDS)
    severities = [fault.severity for faults in drawn for fault in faults]
    assert 0 <= min(severities) <= max(severities) < 1
    assert np.mean(severities) == pytest.approx(0.5, abs=0.023)  # five standard errors


def test_more_corruptions_than_kinds_are_refused():
    with pytest.raises(ConfigError, match="4 kinds for 5"):
        draw_degradations(KINDS, 5, np.random.default_rng(0))


def test_drafts_begin_with_the_good_answer_and_have_the_quality_of_their_faults():
    faults = [DrawnDegradation("wrong_fact", 0.0), DrawnDegradation("garbled", 1.0)]
    good, *worse = write_drafts(MATERIAL, faults, seed=3)
    assert good == Draft(ENTRY.answer, "good_answer", 1.0)
    assert [(draft.made_by, draft.quality) for draft in worse] == [
        ("wrong_fact", DEGRADATIONS["wrong_fact"].best),
        ("garbled", pytest.approx(DEGRADATIONS["garbled"].worst)),
    ]
    assert worse[0].text == ENTRY.answer.replace("100", "50")
    assert write_drafts(MATERIAL, faults[1:], seed=3)[1] == worse[1], "a text does not depend on the other faults"


def test_the_gold_ranking_is_by_quality_and_equals_share_a_tier():
    case = gold_case(ENTRY, [A, B, C], seed=0)
    good, truncated, garbled = (content_id(draft.text) for draft in (A, B, C))
    assert case.ranking is not None
    assert [set(tier) for tier in case.ranking] == [{good}, {truncated, garbled}]
    assert (case.prompt.id, case.prompt.category, case.prompt.language) == ("w", ("knowledge", "physics"), "en")
    assert case.meta == {"simulated": True}


def test_neither_place_nor_id_nor_author_tells_how_a_response_was_made():
    cases = [gold_case(ENTRY, [A, B, C], seed=seed) for seed in range(60)]
    places = Counter([one.text for one in case.responses].index("甲") for case in cases)
    assert set(places) == {0, 1, 2}
    assert all(one.author is None for case in cases for one in case.responses)
    made_by = {one.id: (one.meta or {})["made_by"] for one in cases[0].responses}
    assert made_by == {content_id(draft.text): draft.made_by for draft in (A, B, C)}


def test_equal_texts_get_ids_of_their_own():
    case = gold_case(ENTRY, [A, A._replace(made_by="off_topic", quality=0.2)], seed=0)
    assert {one.id for one in case.responses} == {content_id("甲"), content_id("甲") + "~2"}
