"""Orders of several answers in a reply's lines: scores such as "A: 8, B: 7", and rankings without brackets.

A ranking is a line such as "Ranking: C > A = B", or a numbered list of all answers at the start or the end of a reply.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache

from steelyard.judging.answer_letters import LABELS
from steelyard.judging.reply_words import VERDICT, announces, negates, reports_verdict
from steelyard.judging.verdict_lines import with_letters
from steelyard.judging.verdict_words import answer_nouns, score_lead, score_points

Tiers = tuple[tuple[str, ...], ...]
"""Labels in tiers, best first."""

_LONGEST_LINE = 200
_ARROWS = re.compile(r"-{1,3}>|={1,3}>|[→⇒⟶➔➜]|>>+")
_STEPS = re.compile(r"\s*([>=])\s*")
_PLACE = re.compile(r"(?:#|№|第)?\s?(\d)(?:[ ]?(?:[^\W\d_]{1,3}|[º°ª]))?\s?[.):\u2013\u2014-]*\s*(?=[^\s\d.,])")
_PART_END = re.compile(r"[.;,。।،؛](?:\s+|$)|[。।]")
_PLACE_NAMES = tuple(re.compile(rf"(?<![A-Za-z\d]){name}(?![A-Za-z\d])") for name in ("(?:A|1)", "(?:B|2)"))
"""The first and the second place where `with_letters` has replaced their words."""
_BETWEEN = " \t,;|/&:.!。،؛、()[]-\u2013\u2014"


def leader_by_scores(lines: Sequence[str], labels: Sequence[str]) -> str | None:
    """Return the label with the highest of the scores that the lines give to each; the empty text where it is shared.

    One line at the end has the scores of all labels, or each label has a line there. Null without them, and where
    another line gives scores with another leader. Numbers from 1 to the number of labels without a scale may be places,
    and count for none.
    """
    scores_by_line = [_scores(line) for line in lines]
    last: dict[str, str] = {}
    for scores in reversed(scores_by_line):
        if not scores or last.keys() & scores.keys():
            break
        last = scores | last
        if len(last) == len(labels):
            break
    if last.keys() != set(labels):
        return None
    leaders = {_leader(scores) for scores in (last, *scores_by_line) if len(scores) > 1}
    places = [str(place) for place in range(1, len(labels) + 1)]
    return None if len(leaders) > 1 or sorted(last.values()) == places else leaders.pop()


def tiers_in_words(lines: Sequence[str], labels: Sequence[str]) -> Tiers | None:
    """Return the ranking of all labels in the first or last line, or in a numbered list there; null without one.

    Null too where other lines rank in another order.
    """
    chains = [_chain(line, labels) or _placed(line, labels) for line in lines]
    size = len(labels)
    lists = [_numbered(part, labels) for part in (lines[:size], lines[-size:]) if len(part) == size]
    orders = {order for order in (*chains, *lists) if order is not None}
    at_ends = {order for order in (*chains[:1], *chains[-1:], *lists) if order is not None}
    return at_ends.pop() if len(orders) == 1 and at_ends else None


def label_of_name(text: str) -> str | None:
    """Return the label of an answer's name, such as "C", "answer C" and "response 3"; null for any other text."""
    match = _name_pattern().fullmatch(text.strip(" .。,;()[]\"'«»“”"))
    if match is None:
        return None
    return (match[1] or match[3] or LABELS[int(match[2]) - 1]).upper()


def _leader(scores: Mapping[str, str]) -> str:
    values = {label: float(re.split("[/%]", value)[0].replace(",", ".")) for label, value in scores.items()}
    best = max(values.values())
    leaders = [label for label, value in values.items() if value == best]
    return leaders[0] if len(leaders) == 1 else ""


def _scores(line: str) -> dict[str, str]:
    """Return the score of each label of a line that says nothing else; empty for any other line."""
    if len(line) > _LONGEST_LINE or not any(map(str.isdecimal, line)):
        return {}
    scores, rest, start = dict[str, str](), list[str](), 0
    for match in _score_pattern().finditer(line):
        scores[match["name"]] = f"{match['number']}{(match['scale'] or '').replace(' ', '')}"
        rest.append(line[start : match.start()])
        start = match.end()
    lead, *between = [*rest, line[start:]] if rest else [line]
    is_plain = all(part.strip(_BETWEEN) in ("", "vs") for part in between)
    is_led = not lead.strip(_BETWEEN) or announces(lead) or score_lead().fullmatch(lead.casefold()) is not None
    return scores if scores and is_plain and is_led and len(scores) == len(rest) else {}


@cache
def _score_pattern() -> re.Pattern[str]:
    return re.compile(
        rf"(?:(?i:{answer_nouns()})\s?)?(?<![A-Za-z])(?P<name>[A-E])(?![A-Za-z])\s?[:=(\u2013\u2014-]?\s?"
        rf"(?P<number>\d{{1,3}}(?:[.,]\d{{1,2}})?)(?!\d)\s?(?P<scale>/\s?\d{{1,3}}|%)?(?:\s?(?i:{score_points()})(?!\w))?"
    )


def _chain(line: str, labels: Sequence[str]) -> Tiers | None:
    """Return the ranking of a line such as "Ranking: C > A = B"; null for any other line."""
    if len(line) > _LONGEST_LINE:
        return None
    plain = _ARROWS.sub(">", line)
    first = plain.find(">")
    lead, colon, _ = plain[: max(first, 0)].rpartition(":")
    if not colon and first < 0:
        return None
    if colon and (negates(lead) or reports_verdict(f"{lead}: {VERDICT}") or re.search(r"(?<!\w)[A-E](?!\w)", lead)):
        return None
    tiers = [[]]
    for place, part in enumerate(_STEPS.split(plain[len(lead) + len(colon) :])):
        if place % 2:
            tiers += [[]] if part == ">" else []
        else:
            tiers[-1].append(label_of_name(part))
    return _all_once(tiers, labels)


def _placed(line: str, labels: Sequence[str]) -> Tiers | None:
    """Return the ranking of a line such as "First place: C. Second place: A. Third place: B."; null for any other."""
    parts = (
        [part.partition(":") for part in _PART_END.split(line) if part.strip()] if len(line) <= _LONGEST_LINE else []
    )
    leads = [with_letters(lead, is_noun_needed=False) for lead, _, _ in parts]
    names = [label_of_name(name) for _, _, name in parts]
    # "Answer 1: C" says how an answer is called.
    if len(parts) < 2 or any(negates(lead) or re.search(answer_nouns(), lead.casefold()) for lead in leads):
        return None
    # Words for the third place and the next ones stand in no table: what follows the second place is in order.
    is_placed = all(_PLACE_NAMES[place].search(lead) for place, lead in enumerate(leads[:2]))
    return _all_once([[name] for name in names], labels) if is_placed else None


def _numbered(lines: Sequence[str], labels: Sequence[str]) -> Tiers | None:
    """Return the ranking of a numbered list that holds nothing but the names of all answers."""
    tiers = dict[int, list[str | None]]()
    for line in lines:
        match = _PLACE.match(line) if len(line) <= _LONGEST_LINE else None
        if match is None:
            return None
        tiers.setdefault(int(match[1]), []).append(label_of_name(line[match.end() :]))
    return _all_once([tiers[place] for place in sorted(tiers)], labels) if min(tiers, default=0) == 1 else None


def _all_once(tiers: Sequence[Sequence[str | None]], labels: Sequence[str]) -> Tiers | None:
    names = [name for tier in tiers for name in tier]
    if None in names or sorted(map(str, names)) != sorted(labels):
        return None
    return tuple(tuple(sorted(map(str, tier))) for tier in tiers)


@cache
def _name_pattern() -> re.Pattern[str]:
    noun = answer_nouns()
    return re.compile(rf"(?:{noun}\s?)?([A-E])|{noun}\s?([1-5])|([A-E])\s{noun}", re.IGNORECASE)
