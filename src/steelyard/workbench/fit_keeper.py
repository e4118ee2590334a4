"""Fits and assessments beside the requests: a page that needs one begins it, and shows what is stored.

A fit of 20,000 answers takes a minute, one of 300 a second, the assessment of an item 2 milliseconds. A page waits for
half a second where that may be enough: those of a small project are then done. For a large one it would wait in vain.
"""

import threading
import time

from sqlalchemy.exc import SQLAlchemyError

from steelyard.workbench.database import Database
from steelyard.workbench.item_assessments import assess_items, count_waiting, has_waiting
from steelyard.workbench.rater_fits import count_answers, fit_people, is_due

PATIENCE = 0.5
"""Seconds that a page waits for what is due, where it may be done by then."""
_MOST_ANSWERS, _MOST_ITEMS = 500, 200
"""A fit of more answers, and the assessment of more items, take longer than anybody waits for a page."""


class FitKeeper:
    """Makes what is due of a project, the fit and the assessment of its items, in a thread of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._guard = threading.Lock()
        self._running: dict[int, threading.Thread] = {}

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
                thread = threading.Thread(target=self._fit, args=(project,), daemon=True)
                self._running[project] = thread
                thread.start()
        if not is_long:
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
