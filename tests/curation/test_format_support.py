from collections import Counter

import pytest

from steelyard.core.types import Pair
from steelyard.curation.format_support import PARTS, carrying, carrying_pairs, count_lost, lost_parts
from strategies import case

IDS = carrying("prompt ids", "response ids", "more than two responses")


def test_only_what_is_there_and_not_carried_is_counted():
    dropped = Counter()
    count_lost(case(language="zh", judgments=["a>b"]), dropped, IDS)
    assert dropped == {"language": 1, "judgments": 1}


def test_pairs_that_a_written_ranking_brings_back_are_counted():
    curated = case(responses="abc", ranking=(("a",), ("b",), ("c",)), pairs=(Pair(better="a", worse="b"),))
    dropped = Counter()
    count_lost(curated, dropped, carrying("rankings"))
    assert dropped["curation: pairs that the written ranking brings back"] == 2
    dropped.clear()
    count_lost(curated, dropped, carrying("rankings", "listed pairs"))
    assert "curation: pairs that the written ranking brings back" not in dropped


def test_how_a_row_was_read_is_no_meta_of_the_case():
    dropped = Counter()
    count_lost(case(meta={"as_read": {"format": "trl"}}), dropped, IDS)
    count_lost(case(meta={"as_read": {"format": "trl"}, "own": 1}), dropped, IDS)
    assert dropped == {"case meta": 1}


def test_details_of_what_is_lost_as_a_whole_are_not_named_again():
    dropped = lost_parts(carrying_pairs("margins"))
    assert (
        "judgments" in dropped,
        "judges" in dropped,
        "weights" in dropped,
        "margins" in dropped,
    ) == (True, False, True, False)
    assert lost_parts(PARTS) == ()


def test_a_misspelt_part_is_a_defect():
    with pytest.raises(AssertionError, match="langauge"):
        carrying("langauge")
