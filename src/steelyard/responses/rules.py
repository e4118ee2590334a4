"""The table of cleaning rules: what each measures, its limit, the prompts it applies to, and what it does by default.

Rules are made for high recall, as CHEEMS asks (section 4.1): a good answer that is lost costs less than a broken one
that is judged. Differs from: CHEEMS, whose rules are length and symbols of other scripts alone.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from types import MappingProxyType
from typing import Literal, NamedTuple

from steelyard.core.errors import ConfigError, choices
from steelyard.responses import faults, unfinished
from steelyard.responses.foreign import ForeignText
from steelyard.responses.lengths import LengthBounds
from steelyard.responses.phrases import AnswerPhrases
from steelyard.responses.subject import TASKS, Subject, Task

Action = Literal["drop", "mask", "count", "off"]
"""``drop`` removes the response, ``mask`` replaces words, ``count`` keeps and counts, ``off`` does nothing."""

_LONGEST_REFUSAL = 1200.0
"""Letters of an answer above which a phrase that declines is one remark among others."""
_NO_LIMITS: Mapping[Task, float] = MappingProxyType({})
_NOT_SAFETY: tuple[Task, ...] = ("text", "math", "code")
_PROSE: tuple[Task, ...] = ("text", "safety")
_NOT_CODE: tuple[Task, ...] = ("text", "math", "safety")


class Measures(NamedTuple):
    """Inputs of rules besides the response: phrases, the languages, and the usual lengths of its group."""

    phrases: AnswerPhrases
    foreign: ForeignText
    lengths: LengthBounds


class CleaningRule(NamedTuple):
    """One rule. A response breaks it if its figure is above the limit, or below it where ``is_lower``.

    ``limits`` has the limit of a task where it differs. A null figure means that the rule does not apply.
    """

    name: str
    measures: str
    limit: float | None
    figure: Callable[[Subject, Measures], float | None]
    tasks: tuple[Task, ...] = TASKS
    limits: Mapping[Task, float] = _NO_LIMITS
    is_lower: bool = False
    action: Action = "drop"

    def limit_for(self, subject: Subject, measures: Measures) -> float:
        """Return the limit for a response; that of lengths comes from its group."""
        if self.limit is None:
            return measures.lengths.shortest if self.is_lower else measures.lengths.longest
        return self.limits.get(subject.task, self.limit)


def _length(subject: Subject, _: Measures) -> float:
    return float(len(subject.text.strip()))


def _foreign(subject: Subject, measures: Measures) -> float | None:
    return measures.foreign.share(subject)


def _refusals(subject: Subject, measures: Measures) -> float | None:
    return measures.phrases.refusals(subject) if subject.size <= _LONGEST_REFUSAL else None


def _letters_after_last_mark(subject: Subject, measures: Measures) -> float | None:
    return unfinished.letters_after_last_mark(subject, measures.phrases.is_open_end)


def _plain(function: Callable[[Subject], float | None]) -> Callable[[Subject, Measures], float | None]:
    return lambda subject, _: function(subject)


_rule = CleaningRule
RULES: tuple[CleaningRule, ...] = (
    _rule("empty", "letters and digits", 1, lambda s, _: float(sum(map(str.isalnum, s.text[:1000]))), is_lower=True),
    _rule("template_leftover", "marks of chat templates, turns or reasoning", 0, _plain(faults.template_leftovers)),
    _rule("garbled", "broken characters a thousand", 1, _plain(faults.broken_characters)),
    _rule("repeated_text", "share of runs of characters that occurred before", 0.3, _plain(faults.repeated_windows),
         limits={"code": 0.6, "math": 0.5}),
    _rule("repeated_lines", "share of lines that occurred before", 0.4, _plain(faults.repeated_lines),
         limits={"code": 0.6}),
    _rule("compressible", "share of bytes that compression saves", 0.8, _plain(faults.compressibility),
         limits={"code": 0.88, "math": 0.85}),
    _rule("wrong_language", "share of prose in another language", 0.5, _foreign, limits={"code": 0.8, "math": 0.8}),
    _rule("code_switched", "share of prose in another language", 0.12, _foreign, limits={"code": 0.6, "math": 0.4}),
    _rule("misplaced_marks", "share of punctuation marks where no sentence has one", 0.12,
         _plain(faults.misplaced_marks), tasks=_PROSE),
    _rule("stopped_at_limit", "stopped by the server at a number of tokens", 0, _plain(unfinished.stopped_at_limit)),
    _rule("open_block", "blocks of code or formulas never closed", 0, _plain(unfinished.open_blocks)),
    _rule("open_bracket", "brackets and quotation marks never closed at the end", 0, _plain(unfinished.open_brackets),
         tasks=_PROSE),
    _rule("no_final_mark", "letters after the last final mark", 6, _letters_after_last_mark,
         limits={"code": 20, "math": 20}),
    _rule("prompt_echo", "share copied from the prompt", 0.9, _plain(faults.echoed_share), tasks=_PROSE),
    _rule("refusal", "phrases that decline at the beginning of a short answer", 0, _refusals, tasks=_NOT_SAFETY),
    _rule("too_short", "characters", None, _length, tasks=_NOT_CODE, is_lower=True),
    _rule("too_long", "characters", None, _length),
    _rule("names_model", "names by which the answer says what it is", 0,
         lambda s, m: float(len(m.phrases.own_names(s.text))), action="mask"),
)  # fmt: skip
"""In the order in which a dropped response is counted: by the first rule that it breaks."""


class Finding(NamedTuple):
    """A rule that a response breaks, with its figure and the limit."""

    rule: CleaningRule
    figure: float
    limit: float


def findings(subject: Subject, measures: Measures, rules: Sequence[CleaningRule]) -> list[Finding]:
    """Return the rules that the response breaks, in their order. An empty response breaks no other."""
    broken: list[Finding] = []
    # Two rules with different limits may share a figure, such as the share of prose in another language.
    figures: dict[Callable[[Subject, Measures], float | None], float | None] = {}
    for rule in rules:
        if subject.task not in rule.tasks:
            continue
        if rule.figure not in figures:
            figures[rule.figure] = rule.figure(subject, measures)
        figure = figures[rule.figure]
        if figure is None:
            continue
        limit = rule.limit_for(subject, measures)
        if figure < limit if rule.is_lower else figure > limit:
            broken.append(Finding(rule, figure, limit))
            if rule.name == "empty":
                break
    return broken


def chosen_rules(actions: Mapping[str, Action], limits: Mapping[str, float]) -> tuple[CleaningRule, ...]:
    """Return the rules with other actions and limits; those that are off are left out. A limit holds for every task.

    Raises ConfigError for an unknown rule, for a limit of lengths, which come from the data, and for masking of
    anything but names.
    """
    names = {rule.name for rule in RULES}
    for setting, chosen in (("actions", actions), ("limits", limits)):
        for name in chosen:
            if name not in names:
                raise ConfigError(f"there is no rule {name!r}", where=f"clean.{setting}", allowed=choices(name, names))
    for name, limit in limits.items():
        if not isfinite(limit):
            do = "to leave the rule out, set its action to off"
            raise ConfigError(f"the limit is {limit}", where=f"clean.limits.{name}", allowed="a number", do=do)
    for rule in RULES:
        if rule.limit is None and rule.name in limits:
            do = "set length_spread, always_fine_from or always_fine_to"
            raise ConfigError(f"the limit of {rule.name} comes from the data", where=f"clean.limits.{rule.name}", do=do)
        if actions.get(rule.name) == "mask" and rule.action != "mask":
            raise ConfigError(f"{rule.name} has no words to mask", where="clean.actions", allowed="drop, count or off")
    changed = [
        rule._replace(
            action=actions.get(rule.name, rule.action),
            limit=limits.get(rule.name, rule.limit),
            limits=_NO_LIMITS if rule.name in limits else rule.limits,
        )
        for rule in RULES
    ]
    return tuple(rule for rule in changed if rule.action != "off")
