import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, make_scorer, roc_auc_score
from sklearn.model_selection import cross_val_score

from steelyard.integrations.pairwise_classifier import TIE, PairwiseClassifier

SAMPLES = [("q", "longer answer", "short"), ("问", "短", "比较长的答案"), ("q", "same", "size"), ("q", "aaaa", "b")]


def test_the_first_response_is_better_where_its_reward_is_greater():
    classifier = PairwiseClassifier("longer").fit()
    assert classifier.decision_function(SAMPLES).tolist() == [8, -5, 0, 3]
    assert classifier.predict(SAMPLES).tolist() == [1, 0, TIE, 1]
    chances = classifier.predict_proba(SAMPLES)
    assert chances.sum(axis=1) == pytest.approx(1)
    assert chances[3] == pytest.approx([1 / (1 + np.e**3), np.e**3 / (1 + np.e**3)])


def test_a_tie_is_wrong_whatever_the_label():
    for labels in ([1, 0, 0, 1], [1, 0, 1, 1]):
        assert accuracy_score(labels, PairwiseClassifier("longer").predict(SAMPLES)) == 0.75
        assert PairwiseClassifier("longer").score(SAMPLES, labels) == 0.75


def test_scikit_learn_takes_it_as_an_estimator():
    labels = [1, 0, 1, 0]
    assert (
        roc_auc_score(labels, PairwiseClassifier("longer").decision_function(SAMPLES)) == 0.75
    )  # 8, 0 above -5, not 3
    assert clone(PairwiseClassifier("shorter")).get_params() == {"model": "shorter"}
    values = cross_val_score(
        PairwiseClassifier("longer"), SAMPLES * 2, labels * 2, cv=2, scoring=make_scorer(accuracy_score)
    )
    assert values.tolist() == [0.5, 0.5]
