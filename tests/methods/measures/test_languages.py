import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from steelyard.methods.measures.languages import Kin, Parallel, languages_report
from steelyard.methods.measures.strata import Cell, Label

KIN = {"he": Kin("Afro-Asiatic", "Hebrew", "Mid", 3), "zh": Kin("Sino-Tibetan", "Han", "High", 4),
       "ar": Kin("Afro-Asiatic", "Arabic", "High", 3), "xx": Kin("Afro-Asiatic", None, None, 0)}  # fmt: skip


def parallel(outcomes, categories=("a",)):
    """``outcomes``: language to a text of one letter an item: r(ight), w(rong), t(ied)."""
    labels, rows, tied = [], [], []
    for language, said in outcomes.items():
        for index, letter in enumerate(said):
            labels.append(Label(f"p{index}", Cell(categories[index % len(categories)], None, language)))
            rows.append((1, int(letter == "r"), 1, int(letter == "r")))
            tied.append(int(letter == "t"))
    return Parallel(labels, np.array(rows), np.array(tied))


def report(outcomes, **settings):
    settings = {"num_resamples": 50, "seed": 0, **settings}
    return languages_report(parallel(outcomes, settings.pop("categories", ("a",))), "en", KIN, **settings)


def test_drops_means_and_kin_by_hand():
    found = report({"en": "rrrrrrrrrw", "he": "rrrrrwwwww", "zh": "rrrrrrrwww", "ar": "rwwwwwwwww", "xx": "wwwwwwwwww"})
    drops = {name: own["drop"]["value"] for name, own in found["languages"].items() if name != "en"}
    assert drops == pytest.approx({"he": 0.4, "zh": 0.2, "ar": 0.8, "xx": 0.9})
    assert found["mean"]["value"] == pytest.approx((0.5 + 0.7 + 0.1 + 0.0) / 4)
    assert found["standard_deviation"]["value"] == pytest.approx(np.std([0.5, 0.7, 0.1, 0.0], ddof=1))
    families = found["kin"]["family"]
    assert families["Afro-Asiatic"]["languages"] == ["ar", "he", "xx"]
    assert families["Afro-Asiatic"]["mean"]["value"] == pytest.approx(0.6 / 3)
    # Class 0 is left out, and so is what is not known of a language.
    assert set(found["kin"]["resource_class"]) == {"3", "4"}
    assert set(found["kin"]["script"]) == {"Arabic", "Han", "Hebrew"}


def test_kappa_is_that_of_the_items_in_both_languages():
    rng = np.random.default_rng(1)
    english = "".join(rng.choice(list("rwt"), 200, p=[0.7, 0.2, 0.1]))
    hebrew = "".join(letter if rng.random() < 0.7 else str(rng.choice(list("rwt"))) for letter in english)
    own = report({"en": english, "he": hebrew + "rrrr"})["languages"]["he"]["kappa"]
    assert own["value"] == pytest.approx(cohen_kappa_score(list(english), list(hebrew)))
    assert own["n"] == 200
    assert own["low"] < own["value"] < own["high"]


def test_a_model_that_says_the_same_in_every_language_agrees_wholly_and_drops_nowhere():
    said = "rwrrtwrr" * 5
    found = report({"en": said, "he": said, "zh": said})
    assert found["kappa"]["value"] == 1.0
    for name in ("he", "zh"):
        drop = found["languages"][name]["drop"]
        # Parallel items are drawn together: the drop is 0 in every resample, not only on average.
        assert (drop["value"], drop["low"], drop["high"]) == (0.0, 0.0, 0.0)


def test_accuracy_and_drops_are_means_over_categories():
    found = report({"en": "rrrw", "he": "rwww"}, categories=("a", "b"))
    # English: a 2/2, b 1/2. Hebrew: a 1/2, b 0/2.
    assert found["languages"]["he"]["drop"]["value"] == pytest.approx(0.75 - 0.25)
    by_category = {name: own["value"] for name, own in found["languages"]["he"]["drop_by_category"].items()}
    assert by_category == {"a": 0.5, "b": 0.5}


def test_languages_without_common_items_have_no_kappa():
    labels = [Label(f"en{index}", Cell("a", None, "en")) for index in range(4)]
    labels += [Label(f"he{index}", Cell("a", None, "he")) for index in range(4)]
    found = languages_report(
        Parallel(labels, np.array([(1, 1, 1, 1)] * 8), np.zeros(8, int)), "en", KIN, num_resamples=10, seed=0
    )
    assert found["kappa"] is None
    assert found["languages"]["he"]["kappa"]["value"] is None
