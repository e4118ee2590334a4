"""The verb `split`: a case file into parts by prompt, so that no prompt is trained on and tested on."""

from pathlib import Path

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.types import Counts, Run
from steelyard.files.cases import read_cases, write_cases
from steelyard.files.results import read_run, result_folder
from steelyard.files.talk import say
from steelyard.methods.curation.splits import split_cases


class Config(BaseConfig, frozen=True):
    """``parts`` maps a part's name (its file is ``NAME.jsonl``) to its share of the cases; the shares sum to 1."""

    parts: dict[str, float] = msgspec.field(default_factory=lambda: {"train": 0.8, "test": 0.2})
    seed: int = 0


_DEFAULT = Config()


def split(cases: Path, out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run:
    """Write one case file a part into ``out``. Raises ConfigError for shares that do not sum to 1."""
    _check_parts(config.parts)
    with result_folder(out, "split", config=config, inputs={"cases": cases}, seed=config.seed, force=force) as result:
        if result.is_finished:
            say(f"{out} is finished already: equal input and settings")
            return read_run(out)
        read = tuple(read_cases(cases))
        chosen = split_cases(read, config.parts, seed=config.seed)
        sizes = {name: chosen.count(name) for name in config.parts}
        empty = [name for name, size in sizes.items() if size == 0]
        if empty:
            raise EvidenceError(f"{len(read)} cases leave nothing for {', '.join(empty)}", where=str(cases))
        for name in config.parts:
            write_cases(
                result.path(f"{name}.jsonl"), (case for case, part in zip(read, chosen, strict=True) if part == name)
            )
        result.counts = Counts(num_in=len(read), num_used=len(read))
        result.summary = {"parts": sizes}
    return read_run(out)


def _check_parts(parts: dict[str, float]) -> None:
    if not all(share > 0 for share in parts.values()) or abs(sum(parts.values()) - 1) > 1e-9:
        raise ConfigError(f"shares {parts}", where="split.parts", allowed="shares above 0 that sum to 1")
    for name in parts:
        if not name.isidentifier():
            raise ConfigError(f"part {name!r}", where="split.parts", allowed="a plain word: it becomes a file name")
