"""A reward model as a scikit-learn classifier of pairs: is the first response better than the second?"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from steelyard.core.checks import Turns
from steelyard.core.errors import ConfigError
from steelyard.core.protocols import RewardModel
from steelyard.integrations.reward_function import RewardFunction

TIE = -1
"""The prediction for equal rewards. It is neither class, so that a tie is wrong, as in every accuracy here."""


class PairwiseClassifier(ClassifierMixin, BaseEstimator):
    """Classify pairs of responses with a trained reward model: 1 where the first is better, 0 where the second is.

    A sample is ``(prompt, first, second)``, each a text or a list of messages. The model is not trained further, so
    that `fit` only loads it: scorers, calibration curves and cross-validation of scikit-learn apply to it as it is.
    """

    classes_ = np.array([0, 1])

    def __init__(self, model: str | Path | RewardModel = "longer") -> None:
        self.model = model

    def fit(self, X: Any = None, y: Any = None) -> "PairwiseClassifier":  # noqa: N803 (names of scikit-learn)
        """Load the model. Raises ModelError and KindError."""
        self._rewards = RewardFunction(self.model)
        return self

    def decision_function(self, X: Sequence[tuple[Turns, Turns, Turns]]) -> npt.NDArray[np.float64]:  # noqa: N803
        """Return the reward of the first less that of the second response, by sample.

        Raises ConfigError for a sample of another form, EvidenceError for a response without a reward.
        """
        samples = list(X)
        for place, sample in enumerate(samples):
            if isinstance(sample, str | bytes) or not isinstance(sample, Sequence | np.ndarray) or len(sample) != 3:
                allowed = "a prompt and two responses, each a text or messages"
                raise ConfigError(f"X[{place}] is no triple", where="PairwiseClassifier", allowed=allowed)
        prompts = [sample[0] for sample in samples for _ in range(2)]
        rewards = self._loaded()(prompts, [response for sample in samples for response in sample[1:3]])
        return np.asarray(rewards[0::2]) - np.asarray(rewards[1::2])

    def predict(self, X: Sequence[tuple[Turns, Turns, Turns]]) -> npt.NDArray[np.int64]:  # noqa: N803
        """Return 1, 0, or `TIE` for equal rewards, by sample."""
        margins = self.decision_function(X)
        return np.where(margins == 0, TIE, (margins > 0).astype(np.int64))

    def predict_proba(self, X: Sequence[tuple[Turns, Turns, Turns]]) -> npt.NDArray[np.float64]:  # noqa: N803
        """Return P(second better) and P(first better) by the Bradley-Terry model (CHEEMS, eq. 3), by sample."""
        from scipy.special import expit

        margins = self.decision_function(X)
        return np.stack([expit(-margins), expit(margins)], axis=1)

    def _loaded(self) -> RewardFunction:
        if not hasattr(self, "_rewards"):
            self.fit()
        return self._rewards
