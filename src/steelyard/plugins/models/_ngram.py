"""The scikit-learn half of the n-gram model: features of characters, and Bradley-Terry by logistic regression."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression


class FittedNgrams(NamedTuple):
    """Linear in the tf-idf of a text's character n-grams: a difference of two scores is a log-odds.

    Features of the prompt would cancel in every difference, so there are none.
    """

    features: TfidfVectorizer
    weights: npt.NDArray[np.float64]

    def score(self, texts: Sequence[str]) -> list[float]:
        """One score a text, in order."""
        return (self.features.transform(texts) @ self.weights).tolist()


def fit(
    texts: Sequence[str],
    better: Sequence[int],
    worse: Sequence[int],
    weight: Sequence[float],
    *,
    longest: int,
    min_documents: int,
    max_features: int,
    inverse_regularisation: float,
) -> FittedNgrams | None:
    """The model of pairs of texts (by position); None where the texts hold nothing to learn from."""
    features = TfidfVectorizer(
        analyzer="char",
        ngram_range=(1, longest),
        min_df=min(min_documents, len(texts)),
        max_features=max_features,
        sublinear_tf=True,
        lowercase=False,
    )
    try:
        table = sparse.csr_matrix(features.fit_transform(texts))
    except ValueError:  # scikit-learn's only word for "no n-gram is left"
        return None
    differences = sparse.csr_matrix(table[list(better), :] - table[list(worse), :])
    # Without an intercept the loss of (x, 1) equals that of (-x, 0), so each pair is given once, all with label 1.
    # The library wants two labels: an empty row with label 0 adds a constant and no gradient.
    rows = sparse.vstack([differences, differences[:1] * 0], format="csr")
    labels = np.append(np.ones(len(weight)), 0.0)
    model = LogisticRegression(C=inverse_regularisation, fit_intercept=False, solver="lbfgs", max_iter=5000, tol=1e-6)
    model.fit(rows, labels, sample_weight=np.append(weight, 1.0))
    return FittedNgrams(features, model.coef_[0])
