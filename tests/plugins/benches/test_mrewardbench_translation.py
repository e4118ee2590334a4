import numpy as np
import pytest

from steelyard.core.errors import EvidenceError
from steelyard.core.plugins import build
from steelyard.plugins.benches.subset_benches import TRANSLATION_SUBSETS, translation_subset
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of
from strategies import case


def items(right):
    rows, labels = [], []
    for subset, number in right.items():
        rows += [[1, int(index < number), 1, int(index < number)] for index in range(100)]
        labels += [Label(f"{subset}{index}", Cell("uncategorised", subset)) for index in range(100)]
    return Items(layout_of(labels), np.array(rows), 20)


def test_a_row_of_the_published_table():
    # GPT-4o: M-RewardBench, Table 4, whose average of 82.5 is the plain mean of the eight.
    published = (87, 95, 91, 98, 71, 61, 77, 80)
    right = dict(zip(TRANSLATION_SUBSETS, published, strict=True))
    found = build("benches", "mrewardbench_translation").summarise(resample(items(right), seed=0))
    assert found["overall"]["value"] == pytest.approx(0.825)
    assert found["gaps"]["easy_hard"]["value"] == pytest.approx((87 + 95 + 91 + 98 - 71 - 61 - 77 - 80) / 400)
    assert found["gaps"]["into_english"]["value"] == pytest.approx((87 + 91 + 71 + 77 - 95 - 98 - 61 - 80) / 400)


def test_a_subset_that_is_absent_leaves_no_headline():
    found = build("benches", "mrewardbench_translation").summarise(resample(items({"easy_zh_en": 50}), seed=0))
    assert found["sections"]["easy_zh_en"]["value"] == 0.5
    assert len(found["missing"]) == 7
    assert "overall" not in found


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("maple-zh2en-easy", "easy_zh_en"),
        ("easy_de_en", "easy_de_en"),
        ("Translation-HARD-eng-to-deu", "hard_en_de"),
        ("maple-en-zh-hard", "hard_en_zh"),
        ("zho_Hans>eng_Latn hard", "hard_zh_en"),
        ("maple-zh2en", None),
        ("easy-hard-zh-en", None),
        ("easy-fr-en", None),
        ("easy-zh-de", None),
        ("", None),
    ],
)
def test_level_and_direction_are_read_from_any_spelling(given, wanted):
    assert translation_subset(given) == wanted


def test_a_subset_that_tells_neither_is_refused():
    bench = build("benches", "mrewardbench_translation")
    prepared = bench.normalize(case(subset="maple-zh2en-easy"), "f").prompt
    assert (prepared.subset, prepared.meta) == ("easy_zh_en", {"answer_language": "en"})
    with pytest.raises(EvidenceError, match="no level and direction"):
        bench.normalize(case(subset="maple"), "f")
