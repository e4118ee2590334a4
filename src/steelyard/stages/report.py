"""The verb `report`: finished runs as one self-contained HTML file to keep and send on, or as tables for a paper."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from msgspec import to_builtins

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError, FileError, OutputError
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Counts, Run
from steelyard.io.atomic import part_folder, sweep_parts, write_text
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import Argument, Option, SettingOption, Verb
from steelyard.report.page import page_strings, render
from steelyard.report.sources import FinishedRun, read_sources
from steelyard.report.text_tables import latex_table, markdown_table
from steelyard.views.page import ReportData, is_simulated_data, page_of, read_data
from steelyard.views.report import ReportSummary
from steelyard.views.text import csv_table, result_tables


class Config(BaseConfig, frozen=True):
    """The title and language of the page, and the room for whole items in it."""

    title: str | None = None
    """The title of the page. Default: model and benchmark of its one evaluation, or the folder of its runs."""
    language: Literal["en", "zh"] = "en"
    """The language in which the page opens."""
    max_megabytes: float = 12.0
    """The largest size of the items in the page, in megabytes."""


_DEFAULT = Config()


_TABLES = {".tex": (latex_table, "% "), ".md": (markdown_table, "> "), ".csv": (csv_table, "")}
"""The form of the tables of a paper by the suffix of their file, and the mark of a line that is not a table."""
_OTHER_FORMATS = (".pdf", ".txt", ".json", ".docx", ".png", ".svg")
_MARK = "<!-- a report of steelyard -->"


VERB = Verb(
    "Comparisons and reports",
    63,
    (
        Argument("runs", "The folders of finished runs: resolve, train, evaluate …"),
        Option("out", "FILE.html, .tex, .md or .csv, or a folder for report.html."),
        SettingOption("language"),
        SettingOption("title"),
    ),
)


def report(runs: Sequence[Path], out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run[ReportSummary]:
    """Write one HTML page about finished runs: numbers with intervals, figures, and every prompt to look into.

    The page is one file and needs no network. It is in English and Chinese, with light and dark colours, for phones
    too.

    Example: `steelyard report resolved model evaluated --out report.html`

    A name that ends in .tex, .md or .csv gets the tables of the runs alone, with their intervals: for a paper.

    Example: `steelyard report evaluated --out tables.tex`

    Raises FileError for a run that is not finished, OutputError where ``out`` is something else that a report would
    replace, EvidenceError for reports alone, which have no numbers.
    """
    if out.suffix.lower() in _OTHER_FORMATS and not out.is_dir():
        raise OutputError(
            "a report is a page of HTML, or the tables as text",
            where=str(out),
            allowed="a name ending in .html, .tex, .md or .csv, or a folder",
            do="open the page in a browser and print it, where another kind is needed",
        )
    if not runs:
        raise EvidenceError("no run is named", do="name the folders of finished stages")
    sources = read_sources(runs)
    if out.suffix.lower() in _TABLES and not out.is_dir():
        return _write_tables(sources, out, config, force=force)
    if out.suffix.lower() not in (".html", ".htm"):
        return _into_folder(sources, out, config, force=force)
    _check_replaceable(out, force=force)
    sweep_parts(out)
    with part_folder(out) as folder:
        try:
            run = _into_folder(sources, folder / "report", config, force=False)
        except OutputError as error:
            raise OutputError(error.problem, where=str(out), do=error.do) from error
        (folder / "report" / "report.html").replace(out)
    return run


def _write_tables(sources: Sequence[FinishedRun], out: Path, config: Config, *, force: bool) -> Run[ReportSummary]:
    """Write the tables of the runs as one text. A line at its top names simulated data as such."""
    if out.exists() and not force:
        raise OutputError(
            "this file exists",
            where=str(out),
            do=Advice("name another ", Remedy("out"), ", or say ", Remedy("force", value=True), " to replace it"),
        )
    measured = [source for source in sources if source.run.stage != "report"]
    tables = [
        table
        for source in measured
        for table in result_tables(source.run, source.folder, config.language, name=source.name)
    ]
    # Names in other scripts than Latin leave no letters for a label.
    known = Counter[str]()
    for place, table in enumerate(tables):
        known[table.label] += 1
        if known[table.label] > 1:
            tables[place] = table._replace(label=f"{table.label}-{known[table.label]}")
    if not tables:
        raise EvidenceError(
            "a report has no numbers of its own",
            where=", ".join(str(source.folder) for source in sources),
            do="name the runs that it shows",
        )
    simulated = is_simulated_data(read_data(sources))
    form, mark = _TABLES[out.suffix.lower()]
    if form is csv_table and len(tables) == 1:
        # One table is read by programs, which take the first line for the names of the columns.
        tables = [tables[0]._replace(caption="")]
    banner = page_strings().table["simulated_banner"][config.language]
    text = "\n".join([*((f"{mark}{banner}\n",) if simulated else ()), *map(form, tables)])
    write_text(out, text)
    summary = ReportSummary(
        runs={source.name: source.run.stage for source in measured},
        num_items=0,
        num_items_whole=0,
        num_bytes=len(text.encode()),
        simulated=simulated,
        num_tables=len(tables),
    )
    num_reports = len(sources) - len(measured)
    dropped = {"reports without numbers of their own": num_reports} if num_reports else {}
    counts = Counts(num_in=len(sources), num_used=len(measured), dropped=dropped)
    return Run(stage="report", config=to_builtins(config), counts=counts, summary=summary)


def _into_folder(sources: Sequence[FinishedRun], out: Path, config: Config, *, force: bool) -> Run[ReportSummary]:
    data = read_data(sources)
    inputs = {f"{number}.{source.run.stage}": source.folder / "run.json" for number, source in enumerate(sources, 1)}
    inputs |= {f"cases.{number}": file.path for number, file in enumerate(data.case_files, 1)}
    write = partial(_write, data=data, config=config)
    return run_stage(out, "report", Run[ReportSummary], write, config=config, inputs=inputs, force=force)


def _write(result: Result, data: ReportData, config: Config) -> None:
    page = page_of(
        data,
        title=config.title,
        language=config.language,
        budget=int(config.max_megabytes * 2**20),
        version=version("steelyard"),
    )
    text = f"<!doctype html>\n{_MARK}\n{render(page)}"
    write_text(result.path("report.html"), text)
    num_items, num_whole = len(page.packed.lines), page.packed.num_whole
    result.counts = Counts(
        num_in=len(data.sources),
        num_used=len(data.sources),
        noted={"items": num_items, "items with their texts": num_whole},
    )
    result.summary = ReportSummary(
        runs={source.name: source.run.stage for source in data.sources},
        num_items=num_items,
        num_items_whole=num_whole,
        num_bytes=len(text.encode()),
        simulated=page.is_simulated,
    )


def _check_replaceable(out: Path, *, force: bool) -> None:
    if out.is_dir():
        raise FileError(
            Advice(Remedy("out"), " names a folder as if it were a file"),
            where=str(out),
            do="name a file or another folder",
        )
    if out.is_file() and not force:
        with out.open(encoding="utf-8", errors="replace") as file:
            start = file.read(200)
        if _MARK not in start:
            raise OutputError(
                "not a Steelyard report",
                where=str(out),
                do=Advice("name another ", Remedy("out"), ", or say ", Remedy("force", value=True), " to replace it"),
            )
