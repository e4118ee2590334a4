"""A character n-gram Bradley-Terry model: a baseline of surface features fitted to the training cases."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.remedies import FILE, Advice, Remedy
from steelyard.core.text import response_text
from steelyard.core.types import Case, JsonObject
from steelyard.plugins.models._cross_fitted import CrossFitted, FlatPairs, bradley_terry
from steelyard.ranking.pairs import PairChoice

_DECIMALS = 9
"""The decimals of a score: fits on processors of other kinds differ by less than 1e-14."""


class Config(BaseConfig, frozen=True):
    """Settings of the n-grams and their fit.

    A case whose prompt occurs in the training cases is scored by a fit without that prompt: the training prompts are
    divided into ``folds`` by a hash of their text, and the case's fold is left out.
    """

    train: str = ""
    """The case file to learn from."""
    pairs: PairChoice | None = None
    """Which pairs are learned from. Default: the pairs that a case lists, or else every pair across tiers."""
    longest: int = 3
    """The longest n-gram, in tokens."""
    min_documents: int = 2
    """The least number of answers in which an n-gram must occur."""
    max_features: int = 200_000
    """The largest number of n-grams."""
    inverse_regularisation: float = 1.0
    """scikit-learn's C."""
    folds: int = 5
    """The number of folds, by which a prompt that was learned from is scored by a model without it."""


class FittedNgrams(NamedTuple):
    """Linear in the tf-idf of a text's character n-grams: a difference of two scores is a log-odds.

    Features of the prompt would cancel in every difference, so there are none.
    """

    features: Any
    weights: Any

    def score(self, texts: Sequence[str]) -> list[float]:
        """Return one score per text, in order."""
        scores = self.features.transform(texts) @ self.weights
        # The last bits of a sum depend on the processor and the number of threads.
        return np.round(scores, _DECIMALS).tolist()


class NgramModel(CrossFitted[FittedNgrams]):
    """Scores by fits, one for each fold that is left out, computed when first needed."""

    def __init__(self, config: Config) -> None:
        super().__init__(config.train, config.folds, config.pairs)
        self.config = config

    def protocol(self) -> JsonObject:
        """Return the features, the regularisation and the training cases by their hash."""
        config = self.config
        return {
            "model": "ngram",
            **self.training_protocol(),
            "ngrams": [1, config.longest],
            "min_documents": config.min_documents,
            "max_features": config.max_features,
            "inverse_regularisation": config.inverse_regularisation,
        }

    def rate(self, fitted: FittedNgrams, cases: Sequence[Case]) -> list[float]:
        """Return one score per response, in order."""
        return fitted.score([response_text(response) for case in cases for response in case.responses])

    def fit_fold(self, cases: Sequence[Case], pairs: FlatPairs) -> FittedNgrams:
        """Return the model of the cases' pairs. Raises EvidenceError for responses without text."""
        texts = [response_text(response) for case in cases for response in case.responses]
        fitted = fit_ngrams(texts, pairs.better, pairs.worse, pairs.weight, self.config)
        if fitted is None:
            raise EvidenceError("the training responses hold no text to learn from", where=str(self.path))
        return fitted


def build(config: Config) -> NgramModel:
    """Return the model. Raises ConfigError without training cases."""
    if not config.train:
        raise ConfigError(
            "the ngram model needs training cases",
            where="model.train",
            do=Advice("use ", Remedy("model.train", FILE)),
        )
    if config.folds < 2 or config.longest < 1:
        raise ConfigError(f"folds={config.folds}, longest={config.longest}", allowed="folds >= 2, longest >= 1")
    return NgramModel(config)


def fit_ngrams(
    texts: Sequence[str], better: Sequence[int], worse: Sequence[int], weight: Sequence[float], config: Config
) -> FittedNgrams | None:
    """Return the model of pairs of texts (by position); null where the texts hold nothing to learn from."""
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfVectorizer

    features = TfidfVectorizer(
        analyzer="char",
        ngram_range=(1, config.longest),
        # scikit-learn refuses a minimum above the number of texts.
        min_df=min(config.min_documents, len(texts)),
        max_features=config.max_features,
        sublinear_tf=True,
        lowercase=False,
    )
    try:
        table = sparse.csr_matrix(features.fit_transform(texts))
    except ValueError:  # scikit-learn has no other error for "no n-gram is left"
        return None
    differences = sparse.csr_matrix(table[list(better), :] - table[list(worse), :])
    weights = bradley_terry(differences, weight, inverse_regularisation=config.inverse_regularisation)
    return FittedNgrams(features, weights)
