"""Agreement with people's categories, by hand arithmetic."""

import math

import numpy as np

from steelyard.prompts.category_agreement import LabelledPrompt, category_agreement


def labelled(*rows, parallel=1):
    return [
        LabelledPrompt((f"p{number}", f"text {number} {item}"), people, model)
        for number, (people, model) in enumerate(rows)
        for item in range(parallel)
    ]


MATHS, CODE, ALGEBRA = ("maths",), ("code",), ("maths", "algebra")


def test_accuracy_kappa_and_confusion_by_hand():
    # People: 20 maths, 20 code. The model: 16 of maths right, 4 called code; 15 of code right, 5 called maths.
    rows = [(MATHS, MATHS)] * 16 + [(MATHS, CODE)] * 4 + [(CODE, CODE)] * 15 + [(CODE, MATHS)] * 5
    agreement = category_agreement(labelled(*rows, (CODE, None)), num_unlabelled=3)
    assert (agreement.num_prompts, agreement.num_unparsed, agreement.num_unlabelled) == (40, 1, 3)
    assert agreement.accuracy.value == 31 / 40
    chance = (20 * 21 + 20 * 19) / 1600
    assert math.isclose(agreement.kappa.value, (31 / 40 - chance) / (1 - chance))
    code, maths = agreement.categories
    assert (code.category, code.num_people, code.num_model) == ("code", 20, 19)
    assert (code.recall.value, code.precision.value) == (15 / 20, 15 / 19)
    assert (maths.recall.value, maths.precision.value) == (16 / 20, 16 / 21)
    assert [(one.people, one.model, one.number) for one in agreement.confusions] == [
        ("code", "maths", 5),
        ("maths", "code", 4),
    ]
    assert agreement.whole_path.value is None


def test_intervals_are_those_of_prompts_and_not_of_their_parallel_items():
    random = np.random.default_rng(0)
    rows = [(MATHS, MATHS if random.random() < 0.8 else CODE) for _ in range(30)]
    rows += [(CODE, CODE if random.random() < 0.8 else MATHS) for _ in range(30)]
    single, parallel = category_agreement(labelled(*rows)), category_agreement(labelled(*rows, parallel=5))
    assert parallel.num_prompts == 5 * single.num_prompts
    for name in ("accuracy", "kappa"):
        first, second = getattr(single, name), getattr(parallel, name)
        assert math.isclose(first.value, second.value)
        assert math.isclose(first.low, second.low, abs_tol=0.01)
        assert math.isclose(first.high, second.high, abs_tol=0.01)
        assert first.low < first.value < first.high


def test_paths_are_compared_where_people_gave_several_tiers():
    rows = [(ALGEBRA, ALGEBRA)] * 3 + [(ALGEBRA, MATHS)] + [(MATHS, ALGEBRA)] * 2
    agreement = category_agreement(labelled(*rows))
    assert agreement.accuracy.value == 1
    assert (agreement.whole_path.value, agreement.whole_path.n) == (3 / 4, 4)


def test_no_category_is_an_answer_that_differs():
    agreement = category_agreement(labelled((MATHS, ()), (MATHS, MATHS)))
    assert agreement.accuracy.value == 1 / 2
    assert [(one.people, one.model) for one in agreement.confusions] == [("maths", "none")]


def test_nothing_readable_has_no_numbers():
    agreement = category_agreement(labelled((MATHS, None)))
    assert agreement.accuracy.value is None
    assert agreement.kappa.value is None
    assert agreement.categories == ()
