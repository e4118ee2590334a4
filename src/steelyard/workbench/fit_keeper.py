"""Fits and assessments beside the requests: a page that needs one begins it, and shows what is stored.

A fit of 20,000 answers takes seconds, the assessment of an item 2 milliseconds. A page waits for half a second: by then
those of a small project are done.
"""

import threading
import time

from sqlalchemy.exc import SQLAlchemyError

from steelyard.workbench.database import Database
from steelyard.workbench.item_assessments import assess_items, has_waiting
from steelyard.workbench.rater_fits import fit_people, is_due

PATIENCE = 0.5
"""Seconds that a page waits for what is due."""


class FitKeeper:
    """Makes what is due of a project, the fit and the assessment of its items, in a thread of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._guard = threading.Lock()
        self._running: dict[int, threading.Thread] = {}

    def refresh(self, project: int, *, patience: float = PATIENCE) -> None:
        """Begin what is due of a project, and wait for it for at most ``patience`` seconds."""
        with self._database.reading() as session:
            if not is_due(session, project, at=time.time()) and not has_waiting(session, project):
                return
        with self._guard:
            thread = self._running.get(project)
            if thread is None or not thread.is_alive():
                thread = threading.Thread(target=self._fit, args=(project,), daemon=True)
                self._running[project] = thread
                thread.start()
        thread.join(patience)

    def _fit(self, project: int) -> None:
        try:
            with self._database.reading() as session:
                needs_fit = is_due(session, project, at=time.time())
            if needs_fit:
                fit_people(self._database, project, at=time.time())
            assess_items(self._database, project)
        except SQLAlchemyError:
            # The database is busy or gone: the page shows the fit before, and the next visit tries again.
            return
