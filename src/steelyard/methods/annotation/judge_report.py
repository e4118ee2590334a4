"""What judges said, counted as it comes: outcomes, inconsistencies, and the pull of the first place, with intervals."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from steelyard.core.asking import OUTCOMES, Answer
from steelyard.core.types import Prompt
from steelyard.methods.annotation.verdicts import pull_of_first
from steelyard.methods.measures.accuracy import Floats
from steelyard.methods.measures.tallies import MOST_UNITS, Entries, Group, Tally, shares

_FIRST, _INCONSISTENT = "first", "inconsistent"


class JudgeReport:
    """Sums over cases; by judge, with a panel under its own name beside its members."""

    def __init__(self) -> None:
        self._outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._languages: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._ratings: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._tally = Tally(width=2)
        self._units: dict[str, int] = {}

    def add(self, prompt: Prompt, answers: Mapping[str, Answer]) -> None:
        """Counts what every judge said of one comparison. Prompts of one id are drawn together."""
        unit = self._units.setdefault(prompt.id, len(self._units) % MOST_UNITS)
        for name, answer in answers.items():
            outcomes = Counter(one.outcome for one in answer.verdicts)
            outcomes.update(one.outcome for one in answer.ratings if one.outcome is not None)
            self._outcomes[name].update(outcomes)
            self._languages[name, prompt.language or "unknown"].update(outcomes)
            self._ratings[name].update(f"{one.value:g}" for one in answer.ratings if one.value is not None)
            pull = pull_of_first(answer.verdicts)
            self._note((_FIRST, name), unit, pull.num_first, pull.num_strict)
            shown_twice = [one for one in answer.verdicts if len(one.showings) > 1 and one.verdict != "none"]
            self._note((_INCONSISTENT, name), unit, sum(one.is_inconsistent for one in shown_twice), len(shown_twice))

    def records(self, *, seed: int, num_resamples: int = 1000) -> dict[str, dict[str, Any]]:
        """By judge: ``outcomes``, by language too; ``inconsistent`` and ``first_preferred`` as shares with intervals.

        ``first_preferred``: of strict verdicts in single replies, those for the answer shown first; 0.5 says no pull.
        """
        drawn = self._tally.drawn(seed=seed, num_resamples=num_resamples)

        def share(group: Group) -> dict[str, Any]:
            return shares(drawn.table([group]), lambda sums: (sums[..., 0], sums[..., 1]))[0].record()

        return {
            name: {
                "outcomes": _in_order(own),
                "by_language": {
                    language: _in_order(counts)
                    for (judge, language), counts in sorted(self._languages.items())
                    if judge == name
                },
                "inconsistent": share((_INCONSISTENT, name)),
                "first_preferred": share((_FIRST, name)),
            }
            | ({"ratings": dict(sorted(self._ratings[name].items(), key=_number))} if self._ratings[name] else {})
            for name, own in self._outcomes.items()
        }

    def _note(self, group: Group, unit: int, hits: int, number: int) -> None:
        amount: Floats = np.array([hits, number], dtype=np.float64)
        self._tally.add(Entries((group,), np.array([unit, unit]), np.array([0, 1]), amount))


def _in_order(counts: Mapping[str, int]) -> dict[str, int]:
    return {outcome: counts[outcome] for outcome in OUTCOMES if counts[outcome]}


def _number(item: tuple[str, int]) -> float:
    return float(item[0])
