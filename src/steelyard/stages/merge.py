"""The verb `merge`: case files joined by key, with the evidence of all."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

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
_Key = tuple[str, str | None]


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
        noted: Counter[str] = Counter()
        merged = _merged(files, noted)
        write_cases(result.path("cases.jsonl"), merged.values())
        num_in = len(merged) + noted["joined"]
        result.counts = Counts(num_in=num_in, num_used=num_in, noted=dict(+noted))
        result.summary = {"num_cases": len(merged)}
    return read_run(out)


def _merged(files: Sequence[Path], noted: Counter[str]) -> dict[_Key, Case]:
    merged: dict[_Key, Case] = {}
    disputed: set[_Key] = set()
    for number, path in enumerate(files):
        for case in read_cases(path):
            known = merged.get(case.key)
            if known is None:
                merged[case.key] = case
                continue
            noted["joined"] += 1
            # Once two rankings differ, a third one does not decide.
            added = msgspec.structs.replace(case, ranking=None) if case.key in disputed else case
            try:
                merged[case.key] = union(known, added, noted)
            except RecordError as error:
                raise error.at(Place(f"{_other(files[:number], case)} and {path}")) from error
            if known.ranking and added.ranking and merged[case.key].ranking is None:
                disputed.add(case.key)
    return merged


def _other(earlier: Sequence[Path], case: Case) -> Path:
    """The file that contradicts the case: read again, since this is the way to an error."""
    for path in earlier:
        for known in read_cases(path):
            if known.key == case.key:
                try:
                    union(known, case, Counter())
                except RecordError:
                    return path
    raise AssertionError("a union was refused that no two files refuse")
