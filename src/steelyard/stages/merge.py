"""The verb `merge`: case files joined by key, with the evidence of all."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, Place, RecordError
from steelyard.core.types import Case, Counts, Run
from steelyard.curation.merge import MergeSummary, merge_key, union
from steelyard.io.cases import encode_case, read_cases, write_cases
from steelyard.io.data_files import case_roles, find_case_files
from steelyard.io.progress import track
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.tempfiles import LineStore, StoredLine, open_line_store
from steelyard.io.verbs import Argument, CaseFile, Option, SettingOption, Verb


class Config(BaseConfig, frozen=True):
    """Which prompts are one."""

    ids: Literal["shared", "by_source"] = "shared"
    """Scope of an id: one prompt in all files (shared), or in each source, whose name then goes before the id
    (by_source)."""


_DEFAULT = Config()
_DIGEST_BYTES = 16
_Read = Callable[[Path], Iterator[Case]]
_decoder = msgspec.json.Decoder(Case)


VERB = Verb(
    "Data",
    21,
    (
        Argument("files", "Two case files or more, folders or quoted patterns."),
        Option("out", "The folder for cases.jsonl."),
        SettingOption("ids"),
    ),
)


def merge(files: Sequence[CaseFile], out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run[MergeSummary]:
    """Join case files about the same prompts: the responses, judgments and ratings of all.

    Cases are matched by prompt id and language, however its code is spelled, and their contents by id. Where rankings
    differ, none is written and the cases are counted: run `steelyard resolve` on the merged file. Published sets number
    their prompts from 1: with ``ids="by_source"`` those of different sources stay apart.

    Example: `steelyard merge human.jsonl llm.jsonl --out merged`

    Raises RecordError, naming both files, for one key with two prompts or one response id with two texts.

    >>> sy.merge(cases[:30], cases[20:]).summary.num_cases
    40
    """
    paths = find_case_files(*files)
    if len(paths) < 2:
        raise ConfigError("there is one file to merge", do="name two case files or more")
    read = _read_by_source if config.ids == "by_source" else read_cases

    def write(result: Result) -> None:
        warnings: Counter[str] = Counter()
        with open_line_store(out) as store:
            shown = track(_joined(paths, read, store, warnings), "merge (cases written)")
            num_cases = write_cases(result.path("cases.jsonl"), shown)
        num_in = num_cases + warnings["joined"]
        result.counts = Counts(num_in=num_in, num_used=num_in, noted=dict(+warnings))
        result.summary = MergeSummary(num_cases)

    return run_stage(out, "merge", Run[MergeSummary], write, config=config, inputs=case_roles(paths), force=force)


def _read_by_source(path: Path) -> Iterator[Case]:
    """Yield the cases with their source before the prompt's id; a prompt without a source keeps its id."""
    for case in read_cases(path):
        prompt = case.prompt
        name = f"{prompt.source}/{prompt.id}" if prompt.source else prompt.id
        yield msgspec.structs.replace(case, prompt=msgspec.structs.replace(prompt, id=name))


def _joined(files: Sequence[Path], read: _Read, store: LineStore, warnings: Counter[str]) -> Iterator[Case]:
    """Yield every case once, with the evidence of all files. The first pass stores the cases that repeat a key.

    Memory grows by one digest per key, not with the size of the cases.
    """
    pending: set[bytes] = set()
    for number, path in enumerate(files):
        for case in read(path):
            key = _digest(case)
            if key in pending:
                warnings["joined"] += 1
                store.add(key, number, encode_case(case))
            pending.add(key)
    store.index()
    for path in files:
        for case in read(path):
            key = _digest(case)
            if key in pending:
                pending.remove(key)
                yield _with_later(case, store.lines(key), files, read, warnings)


def _with_later(
    case: Case, later: Sequence[StoredLine], files: Sequence[Path], read: _Read, warnings: Counter[str]
) -> Case:
    merged, is_disputed = case, False
    for stored in later:
        later_case = _decoder.decode(stored.line)
        # Once two rankings differ, a third one does not decide.
        added = msgspec.structs.replace(later_case, ranking=None) if is_disputed else later_case
        before = merged
        try:
            merged = union(before, added, warnings)
        except RecordError as error:
            path = files[stored.source]
            raise error.at(Place(f"{_other(files[: stored.source], read, later_case)} and {path}")) from error
        is_disputed = is_disputed or bool(before.ranking and added.ranking and merged.ranking is None)
    return merged


def _digest(case: Case) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(merge_key(case)), digest_size=_DIGEST_BYTES).digest()


def _other(earlier: Sequence[Path], read: _Read, case: Case) -> Path:
    """Return the file that contradicts the case; the files are read again, since an error follows."""
    for path in earlier:
        for known in read(path):
            if merge_key(known) == merge_key(case):
                try:
                    union(known, case, Counter())
                except RecordError:
                    return path
    raise AssertionError("a union was refused that no two files refuse")
