"""Benchmark files: cases of any format, each in its subset, and their overlap with a model's training prompts.

A file ``bench.toml`` beside the cases has the settings of a benchmark of one's own (the kind ``subsets``).
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.core.config import resolve_config
from steelyard.core.errors import (
    ConfigError,
    EvidenceError,
    FileError,
    KindError,
    Place,
    RecordError,
    UserError,
    listed,
)
from steelyard.core.languages import language_key
from steelyard.core.plugins import build, load
from steelyard.core.remedies import Advice, Command, Placeholder, Remedy
from steelyard.core.text import number_of
from steelyard.core.types import Case, InputFinding, JsonObject
from steelyard.io.cases import CASE_SUFFIXES, read_placed_cases
from steelyard.io.data_files import expand_inputs
from steelyard.io.hashing import file_hash
from steelyard.io.kept import read_kept
from steelyard.io.lines import read_toml, toml_places
from steelyard.io.rows import ROW_SUFFIXES, is_array, read_rows
from steelyard.io.run_folder import RUN_FILE
from steelyard.io.tables import is_parquet
from steelyard.statistics.stated_label_error import StatedLabelError

PLAIN_KIND, SUBSETS_KIND = "cases", "subsets"
CASE_KINDS = (PLAIN_KIND, SUBSETS_KIND)
"""The kinds of bench that read case files only, and have the names of their files or of their settings."""
BENCH_FILE = "bench.toml"


def split_kinds(texts: Iterable[str], *, is_path: Callable[[str], bool]) -> dict[str, list[str]]:
    """Return the files of each kind of bench, written ``[KIND=]FILE``. A value that is a path itself has no kind."""
    files: dict[str, list[str]] = {}
    for text in texts:
        kind, equals, file = text.partition("=")
        if not equals or is_path(text):
            kind, file = PLAIN_KIND, text
        files.setdefault(kind, []).append(file)
    return files


def check_one_kind(kinds: Set[str]) -> None:
    """Raise ConfigError for benches of several kinds."""
    if len(kinds) > 1:
        problem = f"two kinds of bench at once: {', '.join(sorted(kinds))}"
        raise ConfigError(problem, do=Advice("run `", Command("evaluate"), "` for each kind"))


def find_bench_files(benches: Sequence[Path], bench: Any) -> tuple[Path, ...]:
    """Return the files of a bench: those named, and the data files of folders and patterns (`expand_inputs`)."""
    if bench.source_format is None:
        kind = Remedy("bench", Placeholder("KIND=FOLDER"))
        do = Advice("check the path; other formats need the kind of benchmark (", kind, "): steelyard list benches")
        return expand_inputs(benches, CASE_SUFFIXES, what="benchmark file", do=do, settings=BENCH_FILE)
    return expand_inputs(benches, ROW_SUFFIXES, what="benchmark file", do="check the path and the names")


NOT_KEPT = "not among the kept prompts"
"""The count of cases that a file of kept prompts leaves out."""


def read_bench_file(kind: str, settings: JsonObject, benches: Sequence[Path]) -> tuple[str, JsonObject]:
    """Return the kind and the settings of a bench, with those of the ``bench.toml`` in its folder.

    A folder with that file is of the kind ``subsets`` without saying so. ``settings`` come before those of the file: a
    table adds to the file's, an empty one replaces it. Raises ConfigError for two such files and for invalid settings.
    """
    if kind not in CASE_KINDS:
        return kind, settings
    folders = [path if path.is_dir() else path.parent for path in benches if path.is_dir() or kind == SUBSETS_KIND]
    tables = [folder / BENCH_FILE for folder in dict.fromkeys(folders) if (folder / BENCH_FILE).is_file()]
    if not tables:
        return kind, settings
    if len(tables) > 1:
        problem = f"two benchmarks at once: {listed(list(map(str, tables)))}"
        raise ConfigError(problem, do=Advice("run ", Command("evaluate"), " for each of them"))
    (table,) = tables
    content = read_toml(table)
    with toml_places(table):
        resolve_config(load("benches", SUBSETS_KIND).Config, content, where=str(table))
    merged: JsonObject = {"name": table.absolute().parent.name, **content}
    for key, value in settings.items():
        merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) and value else value
    with toml_places(table):
        try:
            build("benches", SUBSETS_KIND, merged)
        except ConfigError as error:
            raise error.at(f"{table} at {error.where}") from error
    return SUBSETS_KIND, merged


def check_bench_files(files: Sequence[Path], settings: JsonObject) -> None:
    """Raise EvidenceError for a file that is not on the list of the bench, or changed, and for one that is missing."""
    hashes: Mapping[str, str] = settings.get("files") or {}
    there = {path.name for path in files}
    gone = [name for name in hashes if name not in there and not any((path.parent / name).exists() for path in files)]
    if gone and files:
        name = bench_name(SUBSETS_KIND, files, settings)
        problem = f"the benchmark {name} lists {listed(gone)}, which {'is' if len(gone) == 1 else 'are'} not here"
        without = Remedy("bench.files", Placeholder("{}"))
        do = Advice("restore the file; or evaluate without this check: ", without)
        raise EvidenceError(problem, where=str(files[0].parent), allowed="every file of the list", do=do)
    for path in files if hashes else ():
        if (sha256 := file_hash(path)) == hashes.get(path.name, "").lower():
            continue
        name = bench_name(SUBSETS_KIND, files, settings)
        what = "has changed since" if path.name in hashes else "is not in"
        raise EvidenceError(
            f"this file {what} the list of files of the benchmark {name}: its SHA-256 begins with {sha256[:12]}",
            where=str(path),
            allowed=", ".join(f"{file} (SHA-256 {listed_hash[:12]}…)" for file, listed_hash in hashes.items()),
            do=Advice(
                f"restore the file; for a new version write its hash and version into {BENCH_FILE}; or evaluate it "
                "without this check: ",
                Remedy("bench.files", Placeholder("{}")),
            ),
        )


class BenchChoice(NamedTuple):
    """A bench with its kind and its settings, those of a ``bench.toml`` included."""

    kind: str
    settings: JsonObject
    bench: Any
    kept_ids: frozenset[str] | None

    @classmethod
    def of(
        cls, kind: str, settings: JsonObject, benches: Sequence[Path], *, kept_prompts: Path | None
    ) -> "BenchChoice":
        """Return the bench of these files; only the prompts that the file ``kept_prompts`` lists count.

        Errors are those of `read_bench_file`, of the settings, and of `read_kept`.
        """
        kind, settings = read_bench_file(kind, settings, benches)
        bench = build("benches", kind, settings)
        return cls(kind, settings, bench, None if kept_prompts is None else frozenset(read_kept(kept_prompts).prompts))

    def cases(self, files: Sequence[Path]) -> "BenchCases":
        """Return the cases of the files that count."""
        return BenchCases(files, self.bench, self.kept_ids)

    def stated_label_error(
        self, files: Sequence[Path], num_cases: int
    ) -> tuple[StatedLabelError | None, tuple[InputFinding, ...]]:
        """Return the label error that the bench states of these cases; where it is that of others, a finding."""
        stated = self.settings.get("label_error") if self.kind == SUBSETS_KIND else None
        if stated is None:
            return None, ()
        label_error = resolve_config(StatedLabelError, stated, where=BENCH_FILE)
        if label_error.holds_for({path.name: file_hash(path) for path in files}, num_cases):
            return label_error, ()
        total = label_error.items
        return None, (InputFinding(check="label_error_of_other_cases", count=num_cases, total=total),)

    def resolved(self) -> JsonObject:
        """Return the settings with their defaults."""
        kind = load("benches", self.kind)
        return msgspec.to_builtins(resolve_config(kind.Config, self.settings, where=f"bench.{self.kind}"))


class BenchCases:
    """The cases of a bench's files, normalised by the bench. Every iteration reads the files again.

    ``kept_prompts`` are the ids of the prompts that count, in all languages alike; null for all. ``warnings`` has the
    counts of the last reading: of foreign rows, and of cases that are not kept. Raises RecordError for a key that
    occurs twice.
    """

    def __init__(self, files: Sequence[Path], bench: Any, kept_prompts: Set[str] | None = None) -> None:
        self.warnings: dict[str, int] = {}
        self._kept = kept_prompts
        self._files = tuple(files)
        self._bench = bench
        self._size: int | None = None
        self._left_out: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[Case]:
        warnings: Counter[str] = Counter()
        # Digests of fixed size: a table of all keys would need more memory than the columns of the measures.
        seen: set[bytes] = set()
        left_out: set[str] = set()
        size = 0
        for path in self._files:
            for place, read in _cases_of(path, self._bench, warnings):
                case = normalize_case(self._bench, read, place)
                key = "\x1f".join(item_identity(case))
                digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()
                if digest in seen:
                    raise self._repeated(case, place)
                seen.add(digest)
                if self._kept is not None and case.prompt.id not in self._kept:
                    warnings[NOT_KEPT] += 1
                    left_out.add(case.prompt.id)
                    continue
                size += 1
                yield case
        if not size and self._kept is not None:
            raise EvidenceError(
                f"none of {number_of(len(seen), 'case')} is among the {len(self._kept):,} prompts that are kept",
                where=str(self._files[0]),
                do="use the file of kept prompts that belongs to this bench: ids have to be equal",
            )
        self.warnings = dict(warnings)
        self._size = size
        self._left_out = frozenset(left_out)

    @property
    def left_out(self) -> frozenset[str]:
        """The ids of the prompts that are not kept. Scores made elsewhere may be of the whole bench."""
        return self._left_out if len(self) else frozenset()

    def findings(self) -> tuple[InputFinding, ...]:
        """Return that prompts were left out, after a reading: the rest is another benchmark than the whole."""
        number = self.warnings.get(NOT_KEPT, 0)
        return (InputFinding(check="not_kept", count=number, total=number + len(self)),) if number else ()

    def __len__(self) -> int:
        if self._size is None:
            deque(self, maxlen=0)
        assert self._size is not None, "counted by going through all"
        return self._size

    @property
    def line_files(self) -> tuple[Path, ...] | None:
        """The files if every line of each is a case that counts; None if some hold foreign rows or Parquet."""
        are_lines = self._kept is None and all(
            not is_parquet(path) and _is_case_file(path) and not is_array(path) for path in self._files
        )
        return self._files if are_lines else None

    def _repeated(self, case: Case, place: Place) -> RecordError:
        placed = (each for file in self._files for each in _cases_of(file, self._bench, Counter()))
        earlier, other = next(each for each in placed if item_identity(each[1]) == item_identity(case))
        spelling = "" if other.key == case.key else f", as {other.prompt.language!r}"
        return RecordError(
            f"prompt id {case.prompt.id!r}, language {case.prompt.language!r}, is also in {earlier}{spelling}",
            where=place,
            do="give each case its own id: scores are joined to cases by id and language",
        )


class ItemIdentity(NamedTuple):
    """The identity of an item: two items of one prompt in one language are one, however the language is spelled."""

    prompt: str
    language: str


def item_identity(case: Case) -> ItemIdentity:
    """Return the identity of a case among those of a bench."""
    return ItemIdentity(case.prompt.id, language_key(case.prompt.language) if case.prompt.language else "")


def bench_name(kind: str, files: Sequence[Path], settings: JsonObject | None = None) -> str:
    """Return the name of a bench in results: its kind, the name and version of its settings, or those of case files.

    Names of case files have their folders if they repeat; ``cases.jsonl`` of a run has the name of the run's folder.
    """
    if kind not in CASE_KINDS:
        return kind
    if settings and settings.get("name"):
        return " ".join(filter(None, (settings["name"], settings.get("version"))))
    stems = [
        path.resolve().parent.name
        if path.name == "cases.jsonl" and (path.parent / RUN_FILE).is_file()
        else path.name.removesuffix(".gz").rsplit(".", 1)[0]
        for path in files
    ]
    names = [
        f"{path.parent.name}/{stem}" if stems.count(stem) > 1 else stem for path, stem in zip(files, stems, strict=True)
    ]
    return ", ".join(names)


def normalize_case(bench: Any, case: Case, place: Place) -> Case:
    """Return the case with its subset of the bench. Raises UserError at the place for a case of no subset there."""
    try:
        return bench.normalize(case, Path(place.file).name)
    except UserError as error:
        raise error.at(place) from error


def _cases_of(path: Path, bench: Any, warnings: Counter[str]) -> Iterator[tuple[Place, Case]]:
    """Return the cases of a file with their places: their lines in a case file, else the file."""
    if _is_case_file(path):
        return read_placed_cases(path)
    if bench.source_format is None:
        raise KindError(
            "the file is not a case file, and this kind of benchmark reads no other format",
            where=str(path),
            do=Advice(
                "name the kind of benchmark (",
                Remedy("bench", Placeholder("cheemsbench=FILE")),
                "), or make a case file: ",
                Command("convert", (str(path), "cases.jsonl")),
            ),
        )
    return ((Place(str(path)), case) for case in build("formats", bench.source_format).read(read_rows(path), warnings))


def _is_case_file(path: Path) -> bool:
    first = next(iter(read_rows(path)), None)
    if first is None:
        raise FileError("the file holds no record", where=str(path), allowed="a file with at least one case")
    return "format" in first.value or isinstance(first.value.get("prompt"), dict)
