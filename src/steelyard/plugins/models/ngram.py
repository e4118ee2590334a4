"""A character n-gram Bradley-Terry model: what the surface of the text alone can learn from the training cases."""

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.types import Case, Scores
from steelyard.files.cases import read_cases
from steelyard.files.results import file_hash
from steelyard.methods.ranking.pairs import PairChoice, pairs_of
from steelyard.plugins.models._text import prompt_text, response_text

_CASES_AT_A_TIME = 256


class Config(BaseConfig, frozen=True):
    """``train`` is the case file to learn from; ``inverse_regularisation`` is scikit-learn's C.

    A case whose prompt occurs in the training cases is scored by a model that has not seen the prompt: the training
    prompts lie in ``folds`` by a hash of their text, and the case's own fold is left out.
    """

    train: str = ""
    pairs: PairChoice | None = None
    longest: int = 3
    min_documents: int = 2
    max_features: int = 200_000
    inverse_regularisation: float = 1.0
    folds: int = 5


class FlatPairs(NamedTuple):
    """Pairs of texts by their positions, better and worse, with a weight each."""

    better: list[int]
    worse: list[int]
    weight: list[float]


class Fitted(Protocol):
    """A fitted model: a number for each text."""

    def score(self, texts: Sequence[str]) -> list[float]:
        """One score a text, in order."""
        ...


class Model:
    """Scores by fitted models, one for each fold that had to be left out, fitted when first needed."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.path = Path(config.train)
        self.fitted: dict[int | None, Fitted] = {}

    @cached_property
    def training(self) -> tuple[Case, ...]:
        """The training cases."""
        return tuple(read_cases(self.path))

    @cached_property
    def folds(self) -> dict[str, int]:
        """The fold of each training prompt's normalised text: dealt out in the order of their hashes."""
        texts = sorted({_normalised(case) for case in self.training}, key=_hash)
        return {text: place % self.config.folds for place, text in enumerate(texts)}

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """One Scores a case, in order; a case's scores depend on no other case that is scored."""
        remaining = iter(cases)
        while batch := list(islice(remaining, _CASES_AT_A_TIME)):
            for case, scores in zip(batch, self._score_batch(batch), strict=True):
                yield Scores(prompt=case.prompt.id, language=case.prompt.language, scores=scores)

    def protocol(self) -> dict[str, Any]:
        """The features, the regularisation and the training cases by their hash."""
        own = self.config
        return {
            "model": "ngram",
            "train": file_hash(self.path),
            "pairs": own.pairs,
            "ngrams": [1, own.longest],
            "min_documents": own.min_documents,
            "max_features": own.max_features,
            "inverse_regularisation": own.inverse_regularisation,
            "folds": own.folds,
        }

    def _score_batch(self, cases: Sequence[Case]) -> list[dict[str, float | None]]:
        found: list[dict[str, float | None]] = [{} for _ in cases]
        # None where the prompt is no training prompt: then nothing has to be left out.
        left_out = [self.folds.get(_normalised(case)) for case in cases]
        for fold in sorted(set(left_out), key=str):
            members = [index for index, own in enumerate(left_out) if own == fold]
            texts = [response_text(response) for index in members for response in cases[index].responses]
            scores = iter(self._model_without(fold).score(texts) if texts else ())
            for index in members:
                found[index] = {response.id: next(scores) for response in cases[index].responses}
        return found

    def _model_without(self, fold: int | None) -> Fitted:
        if fold not in self.fitted:
            kept = [case for case in self.training if fold is None or self.folds[_normalised(case)] != fold]
            self.fitted[fold] = self._fit(kept)
        return self.fitted[fold]

    def _fit(self, cases: Sequence[Case]) -> Fitted:
        from steelyard.plugins.models._ngram import fit

        pairs = _flat_pairs(cases, self.config.pairs)
        if not pairs.weight:
            raise EvidenceError(
                f"{len(cases)} training cases (the fold of the scored prompt left out) have no ordered pair",
                where=str(self.path),
                do="give more training cases",
            )
        fitted = fit(
            [response_text(response) for case in cases for response in case.responses],
            *pairs,
            longest=self.config.longest,
            min_documents=self.config.min_documents,
            max_features=self.config.max_features,
            inverse_regularisation=self.config.inverse_regularisation,
        )
        if fitted is None:
            raise EvidenceError("the training responses hold no text to learn from", where=str(self.path))
        return fitted


def build(config: Config) -> Model:
    """The model. Raises ConfigError without training cases."""
    if not config.train:
        raise ConfigError(
            "the ngram model needs training cases",
            where="model.train",
            do="give --train-cases FILE, or --set model.train=FILE",
        )
    if config.folds < 2 or config.longest < 1:
        raise ConfigError(f"folds={config.folds}, longest={config.longest}", allowed="folds >= 2, longest >= 1")
    return Model(config)


def _flat_pairs(cases: Sequence[Case], choice: PairChoice | None) -> FlatPairs:
    better, worse, weight, first = [], [], [], 0
    for case in cases:
        for pair in pairs_of(case, choice):
            better.append(first + pair.better)
            worse.append(first + pair.worse)
            weight.append(pair.weight)
        first += len(case.responses)
    return FlatPairs(better, worse, weight)


def _normalised(case: Case) -> str:
    """The prompt's text without differences of case, width and spacing, which do not make it another prompt."""
    return " ".join(unicodedata.normalize("NFKC", prompt_text(case)).casefold().split())


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
