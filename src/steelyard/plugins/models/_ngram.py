"""The scikit-learn half of the n-gram model: features of characters, and Bradley-Terry by logistic regression."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from steelyard.plugins.models._bradley_terry import bradley_terry


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
    weights = bradley_terry(differences, weight, inverse_regularisation=inverse_regularisation)
    return FittedNgrams(features, weights)
