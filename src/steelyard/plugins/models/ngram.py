"""A linear model of character n-grams: a baseline of surface features fitted to pairs or ratings of cases."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.remedies import FILE, Advice, Remedy
from steelyard.core.text import response_text
from steelyard.core.types import Case, JsonObject
from steelyard.networks.settings import RatingCenter
from steelyard.plugins.models._cross_fitted import (
    CrossFitted,
    FlatPairs,
    FlatRatings,
    TrainingEvidence,
    bradley_terry,
    ridge,
)
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
    loss: Literal["bradley-terry", "mean-squared-error"] = "bradley-terry"
    """bradley-terry learns from pairs, mean-squared-error from ratings by ridge regression."""
    dimensions: str | dict[str, float] | None = None
    """For ratings: the dimension, or a table of dimensions with weights. Default: the only one of the cases."""
    rating_center: RatingCenter = "data"
    """For ratings: whether targets are ratings less the mean of all (data), or of each prompt's own."""
    longest: int = 3
    """The longest n-gram, in tokens."""
    min_documents: int = 2
    """The least number of answers in which an n-gram must occur."""
    max_features: int = 200_000
    """The largest number of n-grams."""
    inverse_regularisation: float = 1.0
    """scikit-learn's C: the weight of the loss against half the square of the weights."""
    folds: int = 5
    """The number of folds, by which a prompt that was learned from is scored by a model without it."""


class FittedNgrams(NamedTuple):
    """Linear in the tf-idf of a text's character n-grams: a difference of two scores is a log-odds, or of ratings.

    Features of the prompt would cancel in every difference, so there are none.
    """

    features: Any
    weights: Any
    intercept: float = 0.0

    def score(self, texts: Sequence[str]) -> list[float]:
        """Return one score per text, in order."""
        scores = self.features.transform(texts) @ self.weights + self.intercept
        # The last bits of a sum depend on the processor and the number of threads.
        return np.round(scores, _DECIMALS).tolist()


class NgramModel(CrossFitted[FittedNgrams]):
    """Scores by fits, one for each fold that is left out, computed when first needed."""

    def __init__(self, config: Config) -> None:
        evidence = TrainingEvidence(config.pairs, config.loss, config.dimensions, config.rating_center)
        super().__init__(config.train, config.folds, evidence)
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

    def fit_fold(self, cases: Sequence[Case], evidence: FlatPairs | FlatRatings) -> FittedNgrams:
        """Return the model of the cases' pairs or ratings. Raises EvidenceError for responses without text."""
        texts = [response_text(response) for case in cases for response in case.responses]
        fitted = fit_ngrams(texts, evidence, self.config)
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
    model = NgramModel(config)
    model.evidence.check()
    return model


def fit_ngrams(texts: Sequence[str], evidence: FlatPairs | FlatRatings, config: Config) -> FittedNgrams | None:
    """Return the model of pairs or ratings of texts; null where the texts hold nothing to learn from."""
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
    strength = config.inverse_regularisation
    if isinstance(evidence, FlatRatings):
        rated = sparse.csr_matrix(table[evidence.response, :])
        return FittedNgrams(features, *ridge(rated, evidence.target, evidence.weight, inverse_regularisation=strength))
    differences = sparse.csr_matrix(table[evidence.better, :] - table[evidence.worse, :])
    return FittedNgrams(features, bradley_terry(differences, evidence.weight, inverse_regularisation=strength))
