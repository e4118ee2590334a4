"""Fits and assessments beside the requests: a page that needs one begins it, and shows what is stored.

A fit of 20,000 answers takes a minute, one of 300 a second, the assessment of an item 2 milliseconds. A page waits for
half a second where that may be enough: those of a small project are then done. For a large one it would wait in vain,
and so would every other page, for the threads of a process share one interpreter: a process of its own does it.
"""

import multiprocessing
import os
import signal
import threading
import time

from sqlalchemy.exc import SQLAlchemyError

from steelyard.core.errors import UserError
from steelyard.workbench.pipeline.item_assessments import assess_items, count_waiting, has_waiting
from steelyard.workbench.pipeline.rater_fits import count_answers, fit_people, is_due
from steelyard.workbench.storage.database import Database

THREAD_NAME = "fit of project"
"""The beginning of the names of threads that fit and assess beside the requests."""
PATIENCE = 0.5
"""Seconds that a page waits for what is due, where it may be done by then."""
_MOST_ANSWERS, _MOST_ITEMS = 500, 200
"""A fit of more answers, and the assessment of more items, take longer than anybody waits for a page."""


_BEHIND_REQUESTS = 5
"""The niceness of the process of a long fit beside those that answer requests (`os.nice`)."""


class FitKeeper:
    """Makes what is due of a project, the fit and the assessment of its items, beside the requests."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._guard = threading.Lock()
        self._running: dict[int, threading.Thread] = {}
        # Several long fits at once would take the cores from the requests.
        self._one_process = threading.Lock()

    def refresh(self, project: int, *, patience: float = PATIENCE) -> None:
        """Begin what is due of a project, and wait for at most ``patience`` seconds where it may be done by then."""
        with self._database.reading() as session:
            needs_fit = is_due(session, project, at=time.time())
            if not needs_fit and not has_waiting(session, project):
                return
            is_long = needs_fit and count_answers(session, project) > _MOST_ANSWERS
            is_long = is_long or count_waiting(session, project) > _MOST_ITEMS
        with self._guard:
            thread = self._running.get(project)
            if thread is None or not thread.is_alive():
                name = f"{THREAD_NAME} {project}"
                thread = threading.Thread(target=self._make, name=name, args=(project, is_long), daemon=True)
                self._running[project] = thread
                thread.start()
        if not is_long:
            thread.join(patience)

    def _make(self, project: int, is_long: bool) -> None:  # noqa: FBT001 - an argument of a thread
        if not is_long:
            _make_due(self._database, project)
            return
        address = self._database.engine.url.render_as_string(hide_password=False)
        with self._one_process:
            # The address travels through a pipe: its password is in no list of processes.
            process = multiprocessing.get_context("spawn").Process(
                target=_make_due_apart, args=(address, project), daemon=True
            )
            process.start()
            process.join()


def _make_due(database: Database, project: int) -> None:
    try:
        with database.reading() as session:
            needs_fit = is_due(session, project, at=time.time())
        if needs_fit:
            fit_people(database, project, at=time.time())
        assess_items(database, project)
    except (SQLAlchemyError, UserError):
        # The database is busy or gone, or its disk full: the page shows the fit before, and the next visit tries again.
        return


def _make_due_apart(address: str, project: int) -> None:
    """Make what is due in this process, until it is done or the server has ended."""
    # Ctrl-C reaches this process, too: the server ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_server, daemon=True).start()
    os.nice(_BEHIND_REQUESTS)
    database = Database(address)
    _make_due(database, project)
    database.close()


def _end_with_server() -> None:
    server = multiprocessing.parent_process()
    assert server is not None, "started by the server"
    server.join()
    # What is half done is in no table, and is due again.
    os._exit(1)
