"""Models that are fitted to pairs or ratings of cases and score a training prompt by a fit without its fold."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.iteration import batched
from steelyard.core.remedies import Advice, Command, Remedy
from steelyard.core.text import normal_form, prompt_text
from steelyard.core.types import Case, JsonObject, Scores
from steelyard.io.cases import read_cases
from steelyard.io.hashing import file_hash
from steelyard.networks.ratings import Dimensions, check_dimensions, rating_scale, targets_of
from steelyard.networks.settings import RatingCenter, TargetScale
from steelyard.ranking.pairs import UNLISTED, PairChoice, num_beyond_listed, pairs_of

_CASES_AT_A_TIME = 256
Fitted = TypeVar("Fitted")


class FlatPairs(NamedTuple):
    """Pairs of responses by their positions among all responses of the cases: better, worse, a weight, the case."""

    better: list[int]
    worse: list[int]
    weight: list[float]
    case: list[int]


class FlatRatings(NamedTuple):
    """Ratings of responses by their positions among all responses of the cases: the target, a weight, the case.

    A target is in the unit of the ratings, less their mean; the weight is the number of raters.
    """

    response: list[int]
    target: list[float]
    weight: list[float]
    case: list[int]


class TrainingEvidence(NamedTuple):
    """Target of a fit: pairs by a rule, or with ``mean-squared-error`` ratings."""

    pairs: PairChoice | None = None
    loss: Literal["bradley-terry", "mean-squared-error"] = "bradley-terry"
    dimensions: Dimensions = None
    rating_center: RatingCenter = "data"

    def check(self) -> None:
        """Raise ConfigError for settings of ratings without their loss, and for a rule for pairs with it."""
        check_dimensions(self.dimensions)
        is_of_ratings = self.loss == "mean-squared-error"
        others = {
            "pairs": is_of_ratings and self.pairs is not None,
            "dimensions": not is_of_ratings and self.dimensions is not None,
            "rating_center": not is_of_ratings and self.rating_center != "data",
        }
        if misplaced := [name for name, is_set in others.items() if is_set]:
            raise ConfigError(
                f"{', '.join(misplaced)} with loss={self.loss}, which reads {'ratings' if is_of_ratings else 'pairs'}",
                where="model",
                do=Advice("use ", Remedy("model.loss", "bradley-terry" if is_of_ratings else "mean-squared-error")),
            )


class CrossFitted(ABC, Generic[Fitted]):
    """Scores by fitted models, one for each fold that had to be left out, fitted when first needed.

    ``train`` is the file of the training cases, whose prompts lie in ``num_folds`` folds by a hash of their text. A
    model of ratings scores in their unit: a rating is the score plus ``scale.mean``.
    """

    def __init__(self, train: str, num_folds: int, evidence: TrainingEvidence) -> None:
        self.path = Path(train)
        self.num_folds = num_folds
        self.evidence = evidence
        self.cases: tuple[Case, ...] | None = None
        self.fitted: dict[int | None, Fitted] = {}

    @cached_property
    def training(self) -> tuple[Case, ...]:
        """Return the training cases."""
        return tuple(read_cases(self.path)) if self.cases is None else self.cases

    @cached_property
    def folds(self) -> dict[str, int]:
        """Return the fold of each training prompt's normalised text: folds alternate in the order of the hashes."""
        ordered = sorted(
            {normalised(case) for case in self.training}, key=lambda text: hashlib.sha256(text.encode()).digest()
        )
        return {text: place % self.num_folds for place, text in enumerate(ordered)}

    @cached_property
    def scale(self) -> TargetScale | None:
        """Return the scale of the training cases' ratings; null for a model of pairs."""
        if self.evidence.loss == "bradley-terry":
            return None
        dimensions, center = self.evidence.dimensions, self.evidence.rating_center
        return rating_scale(self.training, dimensions, "identity", center=center, where=str(self.path), table="model.")

    def fit(self, cases: Sequence[Case]) -> Self:
        """Return the same model with other training cases; its protocol names no file. Features of texts are shared."""
        other = copy(self)
        for name in ("training", "folds", "scale"):
            vars(other).pop(name, None)
        other.cases, other.fitted = tuple(cases), {}
        return other

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """Yield one Scores per case, in order; a case's scores do not depend on the other scored cases."""
        for batch in batched(cases, _CASES_AT_A_TIME):
            for case, scores in zip(batch, self._score_batch(batch), strict=True):
                yield Scores(
                    prompt=case.prompt.id, language=case.prompt.language, scores=scores, cut=self.cut_responses(case)
                )

    def cut_responses(self, case: Case) -> tuple[str, ...]:
        """Return the responses of a scored case that were read in part; most such models read any length."""
        return ()

    def training_protocol(self) -> JsonObject:
        """Return the protocol of the training cases: their hash, the rule for pairs or the scale of ratings, folds."""
        train = file_hash(self.path) if self.cases is None else "given"
        if self.scale is not None:
            ratings = msgspec.to_builtins(self.scale)
            return {"train": train, "loss": self.evidence.loss, "ratings": ratings, "folds": self.num_folds}
        choice = self.evidence.pairs
        added = sum(num_beyond_listed(case, pairs_of(case, choice)) for case in self.training if choice)
        return {"train": train, "pairs": choice, "folds": self.num_folds} | ({UNLISTED: added} if added else {})

    @abstractmethod
    def fit_fold(self, cases: Sequence[Case], evidence: FlatPairs | FlatRatings) -> Fitted:
        """Return a model of the cases' pairs, at least one, or of their ratings, at least two different ones."""

    @abstractmethod
    def rate(self, fitted: Fitted, cases: Sequence[Case]) -> list[float]:
        """Return one score per response of all cases, in order; there is at least one."""

    def _score_batch(self, cases: Sequence[Case]) -> list[dict[str, float | None]]:
        scores: list[dict[str, float | None]] = [{} for _ in cases]
        # None for prompts outside the training cases: they need no fold left out.
        left_out = [self.folds.get(normalised(case)) for case in cases]
        for fold in sorted(set(left_out), key=str):  # by text: None and numbers have no order
            members = [index for index, case_fold in enumerate(left_out) if case_fold == fold]
            group = [cases[index] for index in members]
            values = iter(self.rate(self._model_without(fold), group) if any(case.responses for case in group) else ())
            for index in members:
                scores[index] = {response.id: next(values) for response in cases[index].responses}
        return scores

    def _model_without(self, fold: int | None) -> Fitted:
        if fold not in self.fitted:
            cases = [case for case in self.training if fold is None or self.folds[normalised(case)] != fold]
            self.fitted[fold] = self.fit_fold(cases, self._evidence_of(cases))
        return self.fitted[fold]

    def _evidence_of(self, cases: Sequence[Case]) -> FlatPairs | FlatRatings:
        """Return the evidence of the cases. Raises EvidenceError where nothing can be learned from it."""
        where, name = str(self.path), f"{len(cases)} training cases (the fold of the scored prompt left out)"
        if self.scale is not None:
            ratings = flat_ratings(cases, self.scale)
            if len(set(ratings.target)) < 2:
                raise EvidenceError(f"{name} have no two different ratings", where=where, do="give more training cases")
            return ratings
        pairs = flat_pairs(cases, self.evidence.pairs)
        if not pairs.weight:
            do: str = "give more training cases"
            if any(case.ratings for case in cases):
                do = Advice(
                    "the cases have ratings: learn from these with ",
                    Remedy("model.loss", "mean-squared-error"),
                    "; or have them order pairs: ",
                    Command("convert", (where, "judged.jsonl"), (Remedy("ratings_to_judgments", value=True),)),
                    ", then ",
                    Command("resolve", ("judged.jsonl",), (Remedy("out", "resolved"),)),
                )
            raise EvidenceError(f"{name} have no ordered pair", where=where, do=do)
        return pairs


def flat_pairs(cases: Sequence[Case], choice: PairChoice | None) -> FlatPairs:
    """Return the pairs of all cases, by positions among their concatenated responses."""
    flat = FlatPairs([], [], [], [])
    first = 0
    for number, case in enumerate(cases):
        for pair in pairs_of(case, choice):
            flat.better.append(first + pair.better)
            flat.worse.append(first + pair.worse)
            flat.weight.append(pair.weight)
            flat.case.append(number)
        first += len(case.responses)
    return flat


def flat_ratings(cases: Sequence[Case], scale: TargetScale) -> FlatRatings:
    """Return the rated responses of all cases, by positions among their concatenated responses."""
    flat = FlatRatings([], [], [], [])
    first = 0
    for number, case in enumerate(cases):
        for rating in targets_of(case, scale):
            flat.response.append(first + rating.response)
            flat.target.append(rating.target * scale.spread)
            flat.weight.append(rating.weight)
            flat.case.append(number)
        first += len(case.responses)
    return flat


def normalised(case: Case) -> str:
    """Return the prompt's text without differences that do not make another prompt."""
    return normal_form(prompt_text(case))


def bradley_terry(differences: Any, weight: npt.ArrayLike, *, inverse_regularisation: float) -> npt.NDArray[np.float64]:
    """Return weights (feature,) for differences (pair, feature) of better minus worse, dense or sparse.

    The loss is sum(weight * log(1 + exp(-difference @ w))) * ``inverse_regularisation`` + |w|^2 / 2, with no intercept.
    """
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression

    # Without an intercept the loss of (x, 1) equals that of (-x, 0), so each pair is given once, all with label 1.
    # scikit-learn needs two labels: an empty row with label 0 adds a constant and no gradient.
    empty = differences[:1] * 0
    is_sparse = sparse.issparse(differences)
    rows = sparse.vstack([differences, empty], format="csr") if is_sparse else np.concatenate([differences, empty])
    labels = np.append(np.ones(differences.shape[0]), 0.0)
    model = LogisticRegression(C=inverse_regularisation, fit_intercept=False, solver="lbfgs", max_iter=5000, tol=1e-6)
    model.fit(rows, labels, sample_weight=np.append(weight, 1.0))
    return model.coef_[0]


def ridge(
    rows: Any, target: npt.ArrayLike, weight: npt.ArrayLike, *, inverse_regularisation: float
) -> tuple[npt.NDArray[np.float64], float]:
    """Return weights (feature,) and an intercept for the targets of rows (response, feature), dense or sparse.

    The loss is sum(weight * (row @ w + intercept - target)^2) * ``inverse_regularisation`` + |w|^2 / 2. A multiple of
    all targets multiplies both, so that standardised targets would have the same minimum.
    """
    from sklearn.linear_model import Ridge

    # Dense rows have a closed form. Sparse ones are solved by conjugate gradients, whose tolerance is far below the
    # default of scikit-learn, so that scores do not depend on the path to the minimum.
    model = Ridge(alpha=0.5 / inverse_regularisation, tol=1e-13)
    model.fit(rows, np.asarray(target, np.float64), sample_weight=np.asarray(weight, np.float64))
    return model.coef_, float(model.intercept_)
