"""Files beside raw prompts: benchmarks and models whose prompts must not occur again, and wanted shares."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import resolve_config
from steelyard.core.errors import ConfigError, EvidenceError, errors_at
from steelyard.core.remedies import Advice, Command
from steelyard.core.types import Case, Prompt
from steelyard.curation.splits import root_text
from steelyard.evaluation.recognition import known_cases
from steelyard.io.lines import read_toml, toml_places
from steelyard.io.progress import track
from steelyard.io.trained_on import TRAINED_ON_FILE, TrainedOn, read_trained_on
from steelyard.prompts.balance import WantedShares, check_shares
from steelyard.prompts.near_duplicates import ReferenceTexts
from steelyard.prompts.selection import PromptReferences, SelectionConfig

Settings = TypeVar("Settings", bound=SelectionConfig)


def reference_files(against: Sequence[Path], trained: Sequence[Path]) -> dict[str, Path]:
    """Return the files of benchmarks and of trained models by role."""
    files = {f"against.{place}": path for place, path in enumerate(against, 1)}
    return files | {f"trained.{place}": folder / TRAINED_ON_FILE for place, folder in enumerate(trained, 1)}


def read_references(against: Sequence[Path], trained: Sequence[Path], config: SelectionConfig) -> PromptReferences:
    """Read the prompts of benchmarks, and the hashes of those that models were trained on.

    Raises EvidenceError for a model without these hashes, and KindError for a benchmark of no known format.
    """
    benches = {str(path): bench_texts(path, config.overlap) for path in against}
    known: dict[str, Callable[[Prompt], bool]] = {}
    for folder in trained:
        hashes = read_trained_on(folder)
        if hashes is None:
            do = Advice("name the folder of a model that `", Command("train"), "` has written")
            raise EvidenceError(f"there is no {TRAINED_ON_FILE} in the folder", where=str(folder), do=do)
        known[str(folder)] = partial(_is_trained_on, hashes)
    return PromptReferences(benches, known)


def bench_texts(path: Path, overlap: float) -> ReferenceTexts:
    """Return the prompts of a benchmark to compare others with. Raises KindError for a file of no known format."""
    roots = (root_text(case) for case in track(known_cases(path), f"prompts: reading {path.name}"))
    return ReferenceTexts(roots, overlap)


def _is_trained_on(hashes: TrainedOn, prompt: Prompt) -> bool:
    return hashes.has_text(Case(prompt=prompt, responses=()))


class SharesFile(BaseConfig, frozen=True):
    """The tables of a file of shares."""

    category: dict[str, float] = msgspec.field(default_factory=dict)
    """The wanted share of each first-tier category; the shares sum to 1."""
    language: dict[str, float] = msgspec.field(default_factory=dict)
    """The wanted share of each language; the shares sum to 1."""


def with_shares(config: Settings, shares: Path | None) -> Settings:
    """Return the settings with the shares of a file. Raises ConfigError where the settings have shares, too."""
    if shares is None:
        return config
    if config.shares.are_given:
        raise ConfigError("shares as a file and as settings", where=str(shares), do="give one of them")
    with toml_places(shares):
        table = resolve_config(SharesFile, read_toml(shares), where=str(shares))
    with errors_at(str(shares)):
        check_shares(WantedShares(table.category, table.language))
    return msgspec.structs.replace(config, category_shares=table.category, language_shares=table.language)
