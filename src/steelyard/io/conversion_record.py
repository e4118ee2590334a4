"""The record of a conversion beside its file: a file that equal input and settings have written is left as it is."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from steelyard.core.errors import UserError
from steelyard.core.types import Counts, Input, Run
from steelyard.curation.conversion import Conversion, ConversionSummary, ConversionTally
from steelyard.io.atomic import write_once
from steelyard.io.hashing import file_hash
from steelyard.io.lineage import record_folder, source_datasets
from steelyard.io.progress import log
from steelyard.io.run_folder import installed_versions, read_run, write_file_record

Convert = Callable[[Path, ConversionTally], Conversion]
"""Write a file and return what was converted; rows and cases are counted in the tally."""


def convert_once(
    sources: Mapping[str, Path],
    out: Path,
    config: msgspec.Struct,
    write: Convert,
    *,
    dataset_name: str | None,
    force: bool,
) -> Conversion:
    """Write ``out`` and its record, unless equal input and settings have. ``sources`` are the files by role.

    Raises OutputError where ``out`` holds anything else and ``force`` is not set, and what ``write`` raises.
    """
    if not force and (known := _recorded(sources, out, config)) is not None:
        log(f"{out} is written already: equal input and settings")
        return known
    started, tally = time.monotonic(), ConversionTally()
    done, is_new = write_once(out, lambda place: write(place, tally), force=force)
    if not is_new:
        log(f"{out} is written already: equal input and settings")
    run = Run(
        stage="convert",
        config=msgspec.to_builtins(config),
        inputs=_hashed(sources),
        outputs={out.name: file_hash(out)},
        versions=installed_versions(),
        counts=Counts(num_in=done.num_rows, num_used=done.num_rows, noted=done.noted),
        datasets=datasets_of(sources, dataset_name),
        summary=conversion_summary(sources, done, tally),
        seconds=round(time.monotonic() - started, 3),
    )
    # The file is whole without its record.
    write_file_record(out, run)
    return done


def _hashed(sources: Mapping[str, Path]) -> dict[str, Input]:
    return {role: Input(path=str(path), sha256=file_hash(path)) for role, path in sources.items()}


def _recorded(sources: Mapping[str, Path], out: Path, config: msgspec.Struct) -> Conversion | None:
    """Return the recorded conversion of these files and settings that wrote ``out`` as it is; null without one."""
    try:
        run = read_run(record_folder(out), Run[ConversionSummary])
    except UserError:
        return None
    same = (msgspec.to_builtins(config), _hashed(sources), installed_versions())
    if (run.config, run.inputs, run.versions) != same or not out.is_file() or run.outputs != {out.name: file_hash(out)}:
        return None
    summary = run.summary
    return Conversion(
        from_kind=summary.from_kind,
        to_kind=summary.to_kind,
        num_rows=summary.num_rows,
        num_cases=summary.num_cases,
        num_written=summary.num_written,
        noted=dict(run.counts.noted),
        lost=summary.lost,
        columns=summary.guessed,
        translations=summary.translations,
    )


def conversion_summary(sources: Mapping[str, Path], done: Conversion, tally: ConversionTally) -> ConversionSummary:
    """Return the summary of a conversion of these files."""
    paths = [
        file for path in sources.values() for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()
    ]
    summary = ConversionSummary(
        from_kind=done.from_kind,
        to_kind=done.to_kind,
        num_files=len(sources),
        num_bytes=sum(file.stat().st_size for file in paths),
        num_rows=done.num_rows,
        num_cases=done.num_cases,
        num_written=done.num_written,
        lost=done.lost,
        guessed=done.columns,
        translations=done.translations,
    )
    return tally.complete(summary)


def datasets_of(sources: Mapping[str, Path], dataset_name: str | None) -> tuple[str, ...]:
    """Return the names on the Hub: the one of the settings, or those that the records of the files know."""
    if dataset_name:
        return (dataset_name,)
    return source_datasets((path, file_hash(path)) for path in sources.values())
