from collections import Counter

import numpy as np
import pytest

from steelyard.core.errors import ConfigError
from steelyard.core.identity import content_id
from steelyard.core.types import Message
from steelyard.methods.annotation.corpus import Entry, Phrases
from steelyard.methods.annotation.drafts import Draft, Fault, draw_faults, gold_case, write_drafts
from steelyard.methods.annotation.worsening import RULES, Material

KINDS = ("wrong_fact", "truncated", "garbled", "evasive")
PHRASES = Phrases(joint=" ", refusals=("No.",), hedges=("Maybe.",), fillers=("Indeed.",), repeats=("Again, ",))
ENTRY = Entry(
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
    drawn = [draw_faults(KINDS, 2, rng) for _ in range(2000)]
    assert all(len({fault.kind for fault in faults}) == 2 for faults in drawn)
    counted = Counter(fault.kind for faults in drawn for fault in faults)
    # 1000 of 2000 prompts expected for each of four kinds, standard deviation 22.4
    assert all(abs(counted[kind] - 1000) < 5 * 22.4 for kind in KINDS)
    severities = [fault.severity for faults in drawn for fault in faults]
    assert 0 <= min(severities) <= max(severities) < 1
    assert np.mean(severities) == pytest.approx(0.5, abs=0.023)  # five standard errors


def test_more_worse_answers_than_kinds_are_refused():
    with pytest.raises(ConfigError, match="4 kinds for 5"):
        draw_faults(KINDS, 5, np.random.default_rng(0))


def test_drafts_begin_with_the_good_answer_and_have_the_quality_of_their_faults():
    faults = [Fault("wrong_fact", 0.0), Fault("garbled", 1.0)]
    good, *worse = write_drafts(MATERIAL, faults, seed=3)
    assert good == Draft(ENTRY.answer, "good_answer", 1.0)
    assert [(draft.made_by, draft.quality) for draft in worse] == [
        ("wrong_fact", RULES["wrong_fact"].best),
        ("garbled", pytest.approx(RULES["garbled"].worst)),
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
