import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.prompts.near_duplicates import Links, jaccard, near_duplicates, rows_a_band, shingles

ENGLISH = "Write a short poem about the autumn rain that falls on the old harbour of my home town"
CHINESE = "请写一首关于秋天的雨落在我家乡旧港口的短诗,要求押韵并且不超过八行"
HEBREW = "כתוב שיר קצר על גשם הסתיו היורד על הנמל הישן של עיר הולדתי"


def plain(text, size):
    return {text[start : start + size] for start in range(max(1, len(text) - size + 1))}


def plain_jaccard(first, second, size):
    mine, theirs = plain(first, size), plain(second, size)
    return len(mine & theirs) / len(mine | theirs)


@pytest.mark.parametrize(("text", "size"), [(ENGLISH, 5), (CHINESE, 2), (HEBREW, 5), ("日本の秋の雨について", 2)])
def test_similarity_is_that_of_plain_sets_of_character_n_grams(text, size):
    lower = text.lower()
    other = lower.replace("雨", "雪").replace("rain", "snow").replace("קצר", "ארוך")
    assert len(shingles(text)) == len(plain(" ".join(lower.split()), size))
    assert jaccard(shingles(lower), shingles(other)) == pytest.approx(plain_jaccard(lower, other, size))


def test_case_width_and_spacing_do_not_count():
    assert jaccard(shingles("Ｈello  World"), shingles("hello\nworld")) == 1.0
    assert len(shingles("")) == 0
    assert jaccard(shingles(""), shingles("  ")) == 0.0


def test_near_duplicates_of_each_script_are_found_and_others_are_not():
    texts = [ENGLISH, CHINESE, HEBREW, "", ENGLISH + " please", CHINESE + "。谢谢", HEBREW + " בבקשה", "", "🌧️"]
    found = near_duplicates(texts, 0.7)
    assert [(one.first, one.second) for one in found] == [(0, 4), (1, 5), (2, 6)]
    assert found[0].similarity == pytest.approx(plain_jaccard(ENGLISH.lower(), ENGLISH.lower() + " please", 5))


words = st.sampled_from(["alpha", "beta", "gamma", "delta", "秋天", "下雨", "港口", "诗歌"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(words, min_size=1, max_size=8).map(" ".join), max_size=14), st.randoms())
def test_every_link_is_true_and_the_groups_do_not_depend_on_the_order(texts, random):
    threshold = 0.6
    found = near_duplicates(texts, threshold)
    for one in found:
        assert one.similarity == jaccard(shingles(texts[one.first]), shingles(texts[one.second])) >= threshold
    order = list(range(len(texts)))
    random.shuffle(order)
    again = near_duplicates([texts[index] for index in order], threshold)
    assert components(len(texts), found) == components(len(texts), again, order)


def components(number, found, order=None):
    graph = networkx.Graph()
    graph.add_nodes_from(range(number))
    graph.add_edges_from(
        (one.first, one.second) if order is None else (order[one.first], order[one.second]) for one in found
    )
    return {frozenset(part) for part in networkx.connected_components(graph)}


def test_of_a_thousand_pairs_above_the_threshold_almost_all_are_found():
    random = np.random.default_rng(3)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz "))
    originals = ["".join(random.choice(letters, 80)) for _ in range(500)]
    changed = [text[:70] + "".join(random.choice(letters, 10)) for text in originals]
    texts = originals + changed
    above = {
        (index, index + 500)
        for index in range(500)
        if jaccard(shingles(texts[index]), shingles(texts[index + 500])) >= 0.7
    }
    found = {(one.first, one.second) for one in near_duplicates(texts, 0.7)}
    assert len(above) > 300
    assert found <= above  # 80 random characters share nothing by chance
    assert len(found) >= 0.995 * len(above)


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_bands_miss_one_in_a_thousand_at_the_threshold_or_are_single_hashes(threshold):
    rows = rows_a_band(threshold)
    assert rows == 1 or (1 - threshold**rows) ** (128 // rows) <= 0.001
    assert rows == 8 or (1 - threshold ** (rows + 1)) ** (128 // (rows + 1)) > 0.001


def test_links_join_through_others():
    links = Links(5)
    links.join(0, 3)
    links.join(3, 4)
    assert links.groups() == [[0, 3, 4], [1], [2]]
