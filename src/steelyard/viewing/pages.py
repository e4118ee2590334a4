"""The pages that are served: the list of runs, a run in progress, the report of finished runs, and problems.

Reports are those of `steelyard report`, rendered on request and cached by the hashes of their runs' records.
"""

import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import msgspec

from steelyard.core.errors import UserError
from steelyard.core.types import Run
from steelyard.evaluation.tables import Grouped, Sentence, count, word
from steelyard.io.run_folder import STARTED_FILE, RunRequest
from steelyard.report.page import (
    Strings,
    code_markup,
    json_markup,
    page_strings,
    read_template,
    read_texts,
    render,
    script_hash,
    template_environment,
)
from steelyard.report.run_records import protocol
from steelyard.report.sources import FinishedRun, read_sources
from steelyard.viewing.live import (
    CurveReader,
    ShownTask,
    charts,
    duration,
    figures_of_step,
    sentence_values,
    shown_tasks,
)
from steelyard.viewing.runs import ListedRun, RunList, State
from steelyard.views.page import page_of, read_data

if TYPE_CHECKING:
    from jinja2 import Environment

_BUDGET = 12 * 2**20
_MAX_CACHED_BYTES = 128 * 2**20
_LAST_TIME = datetime(9999, 12, 30, tzinfo=UTC).timestamp()
_SHARED_WORDS = ("theme", "all_runs")


class ShownRun(NamedTuple):
    """A run as the templates show it."""

    id: str
    name: str
    place: str
    parent: str
    stage: str
    state: str
    time: float
    datetime: str
    when: str
    duration: str
    value: str
    about: str
    model: str
    problem: str
    task: ShownTask | None
    search: str


class PageError(Exception):
    """A page that cannot be shown, with its HTTP status: a sentence of the interface, or the text of an error."""

    def __init__(self, status: int, sentence: Sentence | None = None, problem: str = "") -> None:
        self.status, self.sentence, self.problem = status, sentence, problem
        super().__init__(problem or (sentence.key if sentence else ""))


class Pages:
    """Renders the pages of one list of runs. Safe to use from several threads."""

    def __init__(self, runs: RunList) -> None:
        self.runs = runs
        self._curves = CurveReader()
        self._rows: dict[str, tuple[int, str]] = {}
        self._reports = _PageCache()
        self._version = version("steelyard")

    def home(self, language: str) -> str:
        """Return the list of runs."""
        changes = self.runs.changes(-1)
        runs = sorted(changes.runs, key=lambda run: (-run.time, run.place))
        return self._page(
            "home",
            language,
            title=self.runs.root.name or word("view_title"),
            about=self._about(len(runs)),
            token=self.runs.token,
            run_version=changes.version,
            states=get_args(State),
            runs=[shown_run(run) for run in runs],
        )

    def changes(self, after: int) -> dict[str, Any]:
        """Return what the open list of runs must change: rows by id, and the ids of runs that are gone."""
        changes = self.runs.changes(after)
        row = self._environment.get_template("view/row_alone.html")
        return {
            "token": self.runs.token,
            "version": changes.version,
            "rows": {run.id: row.render(run=shown_run(run)) for run in changes.runs},
            "gone": changes.gone,
            "about": str(self._strings.sentence(self._about(self.runs.number))),
        }

    def run(self, identifier: str, language: str) -> str:
        """Return the report of a finished run, or the progress of another. Raises PageError."""
        run = self._known(identifier)
        if run.state == "finished":
            return self._report([run], language)
        return self._page("run", language, title=run.name, **self._live(run))

    def live(self, identifier: str, language: str) -> dict[str, str]:
        """Return the state of a run and the contents of its page; only the state where it is finished or gone."""
        run = self.runs.run(identifier)
        if run is None or run.state == "finished":
            return {"state": "gone" if run is None else "finished"}
        html = self._environment.get_template("view/live.html").render(language=language, **self._live(run))
        return {"state": run.state, "html": html}

    def report(self, identifiers: Sequence[str], language: str) -> str:
        """Return one report of several finished runs. Raises PageError."""
        return self._report(self._chosen(identifiers), language)

    def compare(self, identifiers: Sequence[str], language: str) -> str:
        """Return a report of evaluations with their comparison. Raises PageError."""
        from steelyard.stages.compare import compare

        chosen = self._evaluations(identifiers)

        def render_comparison() -> str:
            with tempfile.TemporaryDirectory(prefix="steelyard-") as place:
                compare([run.folder for run in chosen], Path(place) / "compare")
                return self._rendered([*(run.folder for run in chosen), Path(place) / "compare"], None, language)

        return self._cached("compare", chosen, language, render_comparison)

    def leaderboard(self, identifiers: Sequence[str], language: str) -> str:
        """Return the leaderboard of evaluations. Raises PageError."""
        from steelyard.stages.leaderboard import leaderboard

        chosen = self._evaluations(identifiers)

        def render_board() -> str:
            with tempfile.TemporaryDirectory(prefix="steelyard-") as place:
                leaderboard([run.folder for run in chosen], out=Path(place) / "board")
                page = Path(place) / "board" / "leaderboard.html"
                # Evaluations of several benches make a table, which has no page of its own.
                return page.read_text("utf-8") if page.is_file() else self._rendered([page.parent], None, language)

        return self._cached("leaderboard", chosen, language, render_board)

    def problem(self, error: PageError, language: str) -> str:
        """Return a page about what cannot be shown."""
        title = word("problem_title")
        return self._page("problem", language, title=title, sentence=error.sentence, problem=error.problem)

    def _about(self, number: int) -> Sentence:
        return Sentence("view_about", {"runs": count(number), "folder": str(self.runs.root)})

    def _known(self, identifier: str) -> ListedRun:
        run = self.runs.run(identifier)
        if run is None:
            raise PageError(404, Sentence("problem_no_run"))
        return run

    def _chosen(self, identifiers: Sequence[str]) -> list[ListedRun]:
        chosen = [self._known(identifier) for identifier in dict.fromkeys(identifiers)]
        if not chosen:
            raise PageError(400, Sentence("problem_nothing_chosen"))
        for run in chosen:
            if run.state != "finished":
                raise PageError(409, Sentence("problem_unfinished", {"name": run.name}))
        return chosen

    def _evaluations(self, identifiers: Sequence[str]) -> list[ListedRun]:
        chosen = self._chosen(identifiers)
        if len(chosen) < 2 or any(run.stage != "evaluate" for run in chosen):
            raise PageError(400, Sentence("problem_not_compared"))
        return chosen

    def _report(self, chosen: Sequence[ListedRun], language: str) -> str:
        title = chosen[0].name if len(chosen) == 1 else None
        return self._cached(
            "report", chosen, language, lambda: self._rendered([run.folder for run in chosen], title, language)
        )

    def _rendered(self, folders: Sequence[Path], title: str | None, language: str) -> str:
        data = read_data(_with_places(read_sources(folders), self.runs.root))
        page = page_of(data, title=title, language=language, budget=_BUDGET, version=self._version)
        return f"<!doctype html>\n{render(page._replace(home='/'))}"

    def _cached(self, kind: str, chosen: Sequence[ListedRun], language: str, make: Callable[[], str]) -> str:
        with _as_problems():
            key = (kind, language, *(f"{run.id} {run.fingerprint()}" for run in chosen))
            return self._reports.page(key, make)

    def _live(self, run: ListedRun) -> dict[str, Any]:
        """Return the values of the page of an unfinished run."""
        curve = self._curves.curve(run.folder) if run.stage == "train" else None
        tasks = shown_tasks(run.live)
        if curve is not None and tasks and run.live is not None and run.live.tasks[-1].title == "training":
            tasks = (tasks[0]._replace(figures=figures_of_step(curve)), *tasks[1:])
        command = None if run.live is None or run.state == "running" else run.live.resume_line()
        return {
            "run": shown_run(run),
            "sentences": _sentences(run, command),
            "command": command,
            "tasks": tasks,
            "charts": charts(curve),
            "tables": _request_tables(run),
        }

    @cached_property
    def _strings(self) -> Strings:
        strings = page_strings()
        strings.table.update(read_texts("view/strings.toml"))
        return strings

    @cached_property
    def _environment(self) -> "Environment":
        return template_environment(self._strings)

    @cached_property
    def _words(self) -> Any:
        table = page_strings().table
        return json_markup(read_texts("view/strings.toml") | {key: table[key] for key in _SHARED_WORDS})

    def _page(self, name: str, language: str, **values: Any) -> str:
        scripts = [read_template("page.js"), read_template("view/view.js")]
        return self._environment.get_template(f"view/{name}.html").render(
            language=language,
            is_home=name == "home",
            version=self._version,
            root=str(self.runs.root),
            styles=code_markup(read_template("page.css") + read_template("view/view.css")),
            scripts=[code_markup(script) for script in scripts],
            hashes=[script_hash(script) for script in scripts],
            strings=self._words,
            **values,
        )


class _PageCache:
    """Pages that took long to make, the most recent up to a number of bytes.

    One page is made at a time; pages that are made do not wait for it.
    """

    def __init__(self) -> None:
        self._making = threading.Lock()
        self._lock = threading.Lock()
        self._pages: OrderedDict[tuple[str, ...], str] = OrderedDict()

    def page(self, key: tuple[str, ...], make: Callable[[], str]) -> str:
        if (page := self._known(key)) is not None:
            return page
        with self._making:
            if (page := self._known(key)) is not None:  # another request has made it meanwhile
                return page
            page = make()
            with self._lock:
                self._pages[key] = page
                while len(self._pages) > 1 and sum(map(len, self._pages.values())) > _MAX_CACHED_BYTES:
                    self._pages.popitem(last=False)
            return page

    def _known(self, key: tuple[str, ...]) -> str | None:
        with self._lock:
            if key in self._pages:
                self._pages.move_to_end(key)
            return self._pages.get(key)


@contextmanager
def _as_problems() -> Iterator[None]:
    """Raise PageError for the errors of runs that cannot be read, and of files that are removed meanwhile."""
    try:
        yield
    except UserError as error:
        raise PageError(422, problem=str(error)) from error
    except OSError as error:
        raise PageError(422, problem=f"{error.filename or ''}: {(error.strerror or str(error)).lower()}") from error


def _with_places(sources: Sequence[FinishedRun], root: Path) -> tuple[FinishedRun, ...]:
    """Return the runs; those of one name in several folders get their places as names."""
    names = [source.folder.name for source in sources]
    return tuple(
        source._replace(name=source.folder.relative_to(root).as_posix())
        if names.count(source.folder.name) > 1 and source.folder.is_relative_to(root)
        else source
        for source in sources
    )


def shown_run(run: ListedRun) -> ShownRun:
    """Return a run as the templates show it."""
    # A hostile or damaged state may name a time that no calendar has.
    when = datetime.fromtimestamp(min(max(run.time, 0.0), _LAST_TIME), UTC).astimezone()
    tasks = shown_tasks(run.live) if run.state == "running" else ()
    name = run.name or run.place or "/"
    words = (run.place, name, run.stage, run.state, run.headline.model)
    return ShownRun(
        id=run.id,
        name=name,
        place=run.place,
        parent=run.parent,
        stage=run.stage,
        state=run.state,
        time=run.time,
        datetime=when.isoformat(timespec="seconds"),
        when=when.strftime("%Y-%m-%d %H:%M"),
        duration="" if run.seconds is None else duration(run.seconds),
        value=run.headline.value,
        about=run.headline.about,
        model=run.headline.model,
        problem=run.problem,
        task=tasks[0] if tasks else None,
        search=" ".join(words).lower(),
    )


def _sentences(run: ListedRun, command: str | None) -> tuple[Sentence, ...]:
    """Return the state of a run in words, and what to do about it."""
    if run.state == "unreadable":
        return (Sentence("live_unreadable"),)
    if run.state != "running":
        states = [Sentence(f"live_{run.state}")]
        if run.live is not None and run.state == "waiting" and run.live.num_waiting:
            states.insert(0, Sentence("live_num_waiting", {"number": f"{run.live.num_waiting:,}"}))
        return tuple(states) if command else (*states, Sentence("live_same_call"))
    if run.live is None:
        return (Sentence("live_running_plain"),)
    state = Sentence("live_running", sentence_values(run.live))
    return (state,) if run.live.tasks else (state, Sentence("live_starting"))


def _request_tables(run: ListedRun) -> tuple[Grouped, ...]:
    """Return the settings and inputs of an unfinished run; none where they cannot be read."""
    try:
        request = msgspec.json.decode((run.folder / STARTED_FILE).read_bytes(), type=RunRequest)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    record = Run(stage=request.stage, config=request.config, seed=request.config.get("seed"), inputs=request.inputs)
    return tuple(part for part in protocol(run.name, record).tables if part.by in ("settings", "files"))
