"""The result of a verb: the record of the run, its files as values, its table and its figures.

A result without ``out`` owns a temporary folder, which is removed with the last value that uses it.
"""

import html
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from steelyard.api.calls import Call
from steelyard.api.cases import Cases
from steelyard.api.rows import Rows, summary_rows
from steelyard.core.checks import content_id
from steelyard.core.errors import EvidenceError, MissingPartError, choices
from steelyard.core.types import Counts, JsonObject, Record, Run
from steelyard.io.progress import log
from steelyard.io.rows import read_rows
from steelyard.io.run_folder import path_inside
from steelyard.report.page import page_strings
from steelyard.report.run_records import rule_word
from steelyard.report.text_tables import latex_table, markdown_table
from steelyard.views.text import result_sentences, result_tables

if TYPE_CHECKING:
    from pyarrow import Table

    from steelyard.api.charts import Chart

SummaryT = TypeVar("SummaryT", bound=Record)
_SHOWN = 12


class Outcome(Generic[SummaryT]):
    """The result of a verb: what ``run.json`` records, and the files next to it as values.

    >>> resolved = sy.resolve(cases)
    >>> resolved.summary.conflicts.overall.ratio
    0.0
    >>> resolved.cases
    Cases(40 prompts, 80 responses, 40 judgments)
    >>> resolved.counts.num_used
    40
    """

    __slots__ = ("_folder", "_owners", "_run")

    def __init__(self, run: Run[SummaryT], folder: Path, owners: Sequence[object] = ()) -> None:
        self._run, self._folder, self._owners = run, folder, tuple(owners)

    @classmethod
    def of(cls, call: Call, run: Run[SummaryT]) -> Self:
        """Return the result of a call."""
        return cls(run, call.out, call.owners_of_result())

    @property
    def run(self) -> Run[SummaryT]:
        """The record of the run: settings, inputs, outputs, versions, counts, summary, seconds."""
        return self._run

    @property
    def summary(self) -> SummaryT:
        """The numbers of the run, as ``run.json`` has them."""
        return self._run.summary

    @property
    def counts(self) -> Counts:
        """The numbers of items read, used, and dropped by each rule."""
        return self._run.counts

    @property
    def folder(self) -> Path:
        """The folder of the run: ``out``, or a temporary one that is removed with this result."""
        return self._folder

    @property
    def is_temporary(self) -> bool:
        """Remove the folder with this result."""
        return bool(self._owners)

    @property
    def cases(self) -> Cases:
        """The cases that the run wrote. Raises EvidenceError if it wrote none."""
        return self["cases"]

    def __getitem__(self, name: str) -> Cases:
        """Return the cases of one file: ``parts["train"]``; none for an empty one. Raises EvidenceError for others."""
        files = [Path(output).stem for output in self._run.outputs if output.endswith(".jsonl")]
        if name not in files:
            problem = f"{self._run.stage} wrote no case file of the name {name!r}"
            raise EvidenceError(problem, allowed=choices(name, files))
        path = path_inside(self._folder, f"{name}.jsonl")
        return Cases.of_file(path, owner=self._owners or None) if path.stat().st_size else Cases()

    def rows(self, name: str) -> Rows:
        """Return the rows of another file: ``audited.rows("disputed")``, ``supervised.rows("manifest")``."""
        names = [Path(output).stem for output in self._run.outputs if output.endswith(".jsonl")]
        if name not in names:
            raise EvidenceError(f"{self._run.stage} wrote no rows of the name {name!r}", allowed=choices(name, names))
        path = path_inside(self._folder, f"{name}.jsonl")
        return Rows(row.value for row in read_rows(path)) if path.stat().st_size else Rows([])

    def __cases__(self) -> Cases:
        return self.cases

    @property
    def table(self) -> Rows:
        """The main table of the summary: a row for each group, model, language or pair."""
        return summary_rows(self._run)

    def to_dicts(self) -> list[JsonObject]:
        """Return the main table as dictionaries."""
        return self.table.to_dicts()

    def to_arrow(self) -> "Table":
        """Return the main table as a pyarrow Table."""
        return self.table.to_arrow()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def plot(self, title: str | None = None, *, language: str = "en") -> "Chart":
        """Return a figure of the report: the first one, or the one of this title (see `charts`)."""
        from steelyard.api.charts import chart_of

        return chart_of(self._folder, title, language)

    def charts(self, *, language: str = "en") -> "tuple[Chart, ...]":
        """Return every figure that the report shows of this run."""
        from steelyard.api.charts import charts_of

        return charts_of(self._folder, language)

    def to_markdown(self, *, language: str = "en") -> str:
        """Return the tables of the report as Markdown, an interval behind its value."""
        return "\n".join(map(markdown_table, result_tables(self._run, self._folder, language)))

    def to_latex(self, *, language: str = "en") -> str:
        """Return the tables of the report as LaTeX, for the packages booktabs and graphicx.

        Labels have the stage and a hash of settings, inputs and outputs: tables of two results fit in one document.
        """
        run = self._run
        files = {role: file.sha256 for role, file in run.inputs.items()}
        label = f"{run.stage}-{content_id({'config': run.config, 'inputs': files, 'outputs': run.outputs})[:8]}"
        return "\n".join(map(latex_table, result_tables(run, self._folder, language, label=label)))

    def __str__(self) -> str:
        return "\n".join(result_sentences(self._run, self._folder)) or repr(self)

    def __repr__(self) -> str:
        counts = self.counts
        used = f"{counts.num_used:,} of {counts.num_in:,} used"
        rules = ", ".join(
            f"{page_strings().translate(rule_word(rule), 'en')} {number:,}" for rule, number in counts.dropped.items()
        )
        dropped = f", dropped: {rules}" if rules else ""
        return f"Outcome({self._run.stage}: {used}{dropped})"

    def _repr_html_(self) -> str:
        sentences = "".join(f"<p>{html.escape(line)}</p>" for line in result_sentences(self._run, self._folder))
        return f"<p>{html.escape(repr(self))}</p>{sentences}{self.table[:_SHOWN]._repr_html_()}"


class RunViewer:
    """The pages of a folder's runs, served in the background: a link in a notebook, a context that stops them.

    >>> viewer = sy.view(".")
    >>> viewer.url.startswith("http://127.0.0.1:")
    True
    >>> viewer.stop()
    >>> viewer.is_running
    False
    """

    def __init__(self, folder: Path, *, host: str, port: int) -> None:
        try:
            from steelyard.viewing.server import BackgroundServer, is_loopback
        except ModuleNotFoundError as error:
            missing = MissingPartError.of(error)
            if missing is None:
                raise
            raise missing from error
        if not is_loopback(host):
            log(f"{host}: everyone who reaches this machine can read these runs: there is no password")
        self.folder = folder.resolve()
        self._server = BackgroundServer(folder, host=host, port=port)

    @property
    def url(self) -> str:
        """The address of the list of runs."""
        return self._server.url

    @property
    def is_running(self) -> bool:
        """True while the pages can be opened."""
        return self._server.is_running

    def stop(self) -> None:
        """Stop serving and free the port; a second call does nothing."""
        self._server.stop()

    def __enter__(self) -> "RunViewer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"RunViewer({self.url!r})" if self.is_running else "RunViewer(stopped)"

    def _repr_html_(self) -> str:
        # A link and no frame: the pages forbid frames, so that no other page can show them.
        folder = html.escape(str(self.folder))
        if not self.is_running:
            return f"<p>{folder}: stopped</p>"
        url = html.escape(self.url)
        return f'<p>{folder}: <a href="{url}" target="_blank" rel="noopener">{url}</a></p>'
