"""The verb `merge`: case files joined by key, with the evidence of all."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, Place, RecordError
from steelyard.core.types import Case, Counts, Run
from steelyard.files.cases import read_cases, write_cases
from steelyard.files.results import read_run, result_folder
from steelyard.files.talk import say
from steelyard.methods.curation.union import union


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


_DEFAULT = Config()


def merge(files: Sequence[Path], out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run:
    """Write ``cases.jsonl``: every key once, in order of first appearance.

    Raises RecordError, naming both files, for one key with two prompts or one response id with two texts.
    """
    if len(files) < 2:
        raise ConfigError("there is one file to merge", do="name two case files or more")
    inputs = {f"cases.{number}": path for number, path in enumerate(files, 1)}
    with result_folder(out, "merge", config=config, inputs=inputs, force=force) as result:
        if result.is_finished:
            say(f"{out} is finished already: equal inputs")
            return read_run(out)
        merged: dict[tuple[str, str | None], tuple[Case, Path]] = {}
        noted: Counter[str] = Counter()
        num_in = 0
        for path in files:
            for case in read_cases(path):
                num_in += 1
                merged[case.key] = (_joined(merged.get(case.key), case, path, noted), path)
        write_cases(result.path("cases.jsonl"), (case for case, _ in merged.values()))
        noted["joined"] = num_in - len(merged)
        result.counts = Counts(num_in=num_in, num_used=num_in, noted=dict(+noted))
        result.summary = {"num_cases": len(merged)}
    return read_run(out)


def _joined(before: tuple[Case, Path] | None, case: Case, path: Path, noted: Counter[str]) -> Case:
    if before is None:
        return case
    known, its_path = before
    try:
        return union(known, case, noted)
    except RecordError as error:
        raise error.at(Place(f"{its_path} and {path}")) from error
