import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from steelyard.core.plugins import build
from steelyard.evaluation.items import Item
from steelyard.evaluation.language_groups import Kin
from steelyard.evaluation.languages import ParallelEvaluation, compare_languages
from steelyard.plugins.benches.rewardbench import WEIGHT_SETS

KIN = {"he": Kin("Afro-Asiatic", "Hebrew", "Mid", 3), "zh": Kin("Sino-Tibetan", "Han", "High", 4),
       "ar": Kin("Afro-Asiatic", "Arabic", "High", 3), "xx": Kin("Afro-Asiatic", None, None, 0)}  # fmt: skip


def parallel(outcomes, categories=("a",), subsets=(None,)):
    """``outcomes``: language to a text of one letter an item: r(ight), w(rong), t(ied)."""
    return ParallelEvaluation(
        "model",
        "bench",
        [
            Item(
                prompt=f"p{index}",
                language=language,
                category=categories[index % len(categories)],
                subset=subsets[index % len(subsets)],
                num_pairs=1,
                num_correct=int(letter == "r"),
                num_tied=int(letter == "t"),
                exact_match=letter == "r",
            )
            for language, letters in outcomes.items()
            for index, letter in enumerate(letters)
        ],
    )


def report(outcomes, bench="cases", kin=KIN, **settings):
    made = parallel(outcomes, settings.pop("categories", ("a",)), settings.pop("subsets", (None,)))
    settings = {"num_resamples": 50, "seed": 0, **settings}
    return compare_languages(made, build("benches", bench).breakdown, "en", kin, **settings)


def test_drops_means_and_kin_by_hand():
    found = report({"en": "rrrrrrrrww", "he": "rrrrrwwwww", "zh": "rrrrrrrwww", "ar": "rwwwwwwwww", "xx": "wwwwwwwwww"})
    drops = {name: own.drop for name, own in found.languages.items() if name != "en"}
    assert {name: own.absolute.value for name, own in drops.items()} == pytest.approx(
        {"he": 0.3, "zh": 0.1, "ar": 0.7, "xx": 0.8}
    )
    # Of English's 0.8.
    assert {name: own.relative.value for name, own in drops.items()} == pytest.approx(
        {"he": 3 / 8, "zh": 1 / 8, "ar": 7 / 8, "xx": 1.0}
    )
    mean = (0.5 + 0.7 + 0.1 + 0.0) / 4
    assert found.mean.value == pytest.approx(mean)
    assert found.drop.absolute.value == pytest.approx(0.8 - mean)
    assert found.drop.relative.value == pytest.approx(1 - mean / 0.8)
    assert found.standard_deviation.value == pytest.approx(np.std([0.5, 0.7, 0.1, 0.0], ddof=1))
    families = found.kin["family"]
    assert families["Afro-Asiatic"].languages == ("ar", "he", "xx")
    assert families["Afro-Asiatic"].mean.value == pytest.approx(0.6 / 3)
    # Class 0 is left out, and so is what is not known of a language.
    assert set(found.kin["resource_class"]) == {"3", "4"}
    assert set(found.kin["script"]) == {"Arabic", "Han", "Hebrew"}
    assert "column" not in found.kin


def test_languages_of_one_column_are_averaged_first():
    kin = {name: Kin("Sino-Tibetan", column="chinese") for name in ("zh-Hans", "zh-Hant")}
    found = report({"en": "rrrr", "zh-Hans": "rrrr", "zh-Hant": "rrww", "he": "wwww"}, kin=kin)
    assert found.mean.value == pytest.approx((0.75 + 0.0) / 2)
    assert found.mean.n == found.standard_deviation.n == 2
    assert found.kin["family"]["Sino-Tibetan"].mean.value == 0.75


def test_kappa_is_that_of_the_same_items_in_both_languages():
    rng = np.random.default_rng(1)
    english = "".join(rng.choice(list("rwt"), 200, p=[0.7, 0.2, 0.1]))
    hebrew = "".join(letter if rng.random() < 0.7 else str(rng.choice(list("rwt"))) for letter in english)
    found = report({"en": english, "he": hebrew})
    own = found.languages["he"].kappa
    assert own.value == pytest.approx(cohen_kappa_score(list(english), list(hebrew)))
    assert own.n == 200
    assert own.low < own.value < own.high
    assert found.kappa.value == pytest.approx(own.value)


def test_a_model_that_says_the_same_in_every_language_agrees_wholly_and_drops_nowhere():
    said = "rwrrtwrr" * 5
    found = report({"en": said, "he": said, "zh": said})
    assert found.kappa.value == 1.0
    for name in ("he", "zh"):
        drop = found.languages[name].drop.absolute
        # Parallel items are drawn together: the drop is 0 in every resample, and forty items leave room for little.
        assert drop.value == 0.0
        assert drop.high == -drop.low == pytest.approx(4.09 / (40 + 4.09), rel=0.01)


def test_values_and_drops_are_means_over_the_categories_of_a_plain_bench():
    found = report({"en": "rrrw", "he": "rwww"}, categories=("a", "b"))
    # English: a 2/2, b 1/2. Hebrew: a 1/2, b 0/2.
    own = found.languages["he"]
    assert own.overall.value == pytest.approx(0.25)
    assert {name: one.value for name, one in own.sections.items()} == {"a": 0.5, "b": 0.0}
    assert own.drop.absolute.value == pytest.approx(0.75 - 0.25)
    by_section = {name: (one.absolute.value, one.relative.value) for name, one in own.drop.sections.items()}
    assert by_section == {"a": (0.5, 0.5), "b": (0.5, 1.0)}


def test_a_language_has_the_value_that_its_bench_gives_it():
    # One item of each of RewardBench's subsets; the weights are the published ones, and Chat is one subset of five.
    names = [one.name for one in WEIGHT_SETS["mrewardbench"]]
    said = "".join("w" if name in ("math-prm", "mt-bench-med") else "r" for name in names)
    found = report({"en": "r" * 23, "he": said}, bench="mrewardbench", subsets=names)
    own = found.languages["he"]
    sections = {"Chat": (296 - 38) / 296, "Chat Hard": 1.0, "Safety": 1.0, "Reasoning": 0.5}
    assert {name: one.value for name, one in own.sections.items()} == pytest.approx(sections)
    assert own.overall.value == pytest.approx(sum(sections.values()) / 4)
    assert own.drop.sections["Reasoning"].relative.value == pytest.approx(0.5)
    assert found.missing["math-prm"] == "1 prompt, expected 447"
