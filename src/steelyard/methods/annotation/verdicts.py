"""From single replies to verdicts: both orders of a pair, the majority of a panel, shares won, and the place's pull."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from steelyard.core.asking import VERDICTS, Answer, Outcome, PairVerdict, Showing

# Of two reasons for none, the one that says that asking again may help, and then the plainer one, is named.
_GRAVER: tuple[Outcome, ...] = ("failed", "refused", "cut off", "unreadable")


def combine_orders(left: str, right: str, showings: Sequence[Showing]) -> PairVerdict:
    """One verdict from every order in which the pair was shown.

    Verdicts that agree are that verdict; verdicts that do not are a tie, marked inconsistent; one reply that cannot be
    read leaves none.
    """
    for reason in _GRAVER:
        for showing in showings:
            if showing.outcome == reason:
                return PairVerdict(
                    left=left, right=right, outcome=reason, detail=showing.detail, showings=tuple(showings)
                )
    said: set[Outcome] = {showing.outcome for showing in showings}
    assert said, "a pair that was shown"
    is_inconsistent = len(said) > 1
    outcome: Outcome = "tie" if is_inconsistent else said.pop()
    return PairVerdict(
        left=left, right=right, outcome=outcome, is_inconsistent=is_inconsistent, showings=tuple(showings)
    )


def majority(outcomes: Sequence[Outcome]) -> Outcome:
    """What most of a panel's members say, of those who say something; a draw is a tie.

    Where half of the members or more say nothing, neither does the panel: its outcome is then the reason that most of
    them have (``failed`` before all others, since asking again may help).
    """
    said: Counter[Outcome] = Counter(outcome for outcome in outcomes if outcome in VERDICTS)
    if "failed" in outcomes:
        return "failed"
    if 2 * said.total() <= len(outcomes):
        silent = Counter(outcome for outcome in outcomes if outcome not in VERDICTS)
        return max(_GRAVER, key=lambda reason: silent[reason])
    most = max(said.values())
    leading: list[Outcome] = [outcome for outcome, number in said.items() if number == most]
    return leading[0] if len(leading) == 1 else "tie"


class Won(NamedTuple):
    """Each response's share of its comparisons won, null where one of them has no verdict, with the reason."""

    shares: dict[str, float | None]
    reasons: dict[str, str]


def shares_won(names: Iterable[str], verdicts: Iterable[PairVerdict]) -> Won:
    """The share of its comparisons that each response won, a tie counting half: Copeland's score, from 0 to 1.

    A response that was never compared has no share, for the reason ``not compared``.
    """
    won: defaultdict[str, float] = defaultdict(float)
    asked: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    for one in verdicts:
        asked.update((one.left, one.right))
        if one.outcome not in VERDICTS:
            reasons.setdefault(one.left, one.outcome)
            reasons.setdefault(one.right, one.outcome)
        won[one.left] += {"left": 1.0, "tie": 0.5}.get(one.outcome, 0.0)
        won[one.right] += {"right": 1.0, "tie": 0.5}.get(one.outcome, 0.0)
    known = list(names)
    reasons |= {name: "not compared" for name in known if not asked[name]}
    shares = {name: None if name in reasons else won[name] / asked[name] for name in known}
    return Won(shares, {name: reasons[name] for name in known if name in reasons})


class Pull(NamedTuple):
    """How often, of strict verdicts in single replies, the answer shown first was preferred."""

    num_first: int
    num_strict: int


def pull_of_first(verdicts: Iterable[PairVerdict]) -> Pull:
    """The pull of the first place, over every order in which the pairs were shown.

    With both orders shown of every pair a judge without bias of place is at one half, whatever the answers.
    """
    num_first = num_strict = 0
    for verdict in verdicts:
        for showing in verdict.showings:
            if showing.outcome in ("left", "right"):
                preferred = verdict.left if showing.outcome == "left" else verdict.right
                other = verdict.right if showing.outcome == "left" else verdict.left
                num_first += showing.shown.index(preferred) < showing.shown.index(other)
                num_strict += 1
    return Pull(num_first, num_strict)


def members_verdict(left: str, right: str, members: Mapping[str, PairVerdict]) -> PairVerdict:
    """The panel's verdict on a pair from those of its members, by their names."""
    outcomes: dict[str, Outcome] = {name: one.outcome for name, one in members.items()}
    return PairVerdict(left=left, right=right, outcome=majority(list(outcomes.values())), members=outcomes)


def panel_answer(members: Mapping[str, Answer]) -> Answer:
    """What a panel says of a comparison; a panel of one says what its member does.

    Every member was asked about the same pairs, and answers in their order.
    """
    answers = list(members.values())
    if len(answers) == 1:
        return answers[0]
    found = []
    for own in zip(*(answer.verdicts for answer in answers), strict=True):
        first = own[0]
        assert all((one.left, one.right) == (first.left, first.right) for one in own), "the same pairs"
        found.append(members_verdict(first.left, first.right, dict(zip(members, own, strict=True))))
    return Answer(verdicts=tuple(found))
