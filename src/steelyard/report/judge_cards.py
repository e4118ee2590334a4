"""Cards of judges on the page: agreement and correlation with people, what a judge is worth, biases, and flips."""

from collections.abc import Iterator
from typing import NamedTuple

from steelyard.evaluation.tables import (
    DASH,
    PERCENT,
    Grouped,
    Panel,
    Sentence,
    category_word,
    count,
    decimal,
    decimal_interval,
    isolate,
    language_word,
    percent,
    points,
    points_spread,
    table,
    word,
)
from steelyard.judging.judge_card import JudgeCard, JudgeCards, PeopleAgreement


def card_panels(cards: JudgeCards) -> Iterator[Panel]:
    """Yield a panel of agreement with people by group, one of effective labels, and one of biases and flips."""
    if not cards.cards:
        return
    yield Panel(word("card"), None, tuple(_tables(cards, _AGREEMENT)), "note_card")
    yield Panel(
        word("card_effective_labels_title"),
        None,
        tuple(_tables(cards, _EFFECTIVE_LABELS)),
        "note_card_effective_labels",
    )
    biases = [row for card in cards.cards for row in _bias_rows(card)]
    bias_table = table(("judge", "card_bias", "value", "interval", "n"), biases)
    yield Panel(word("card_biases"), None, (Grouped("judge", bias_table),), "note_card_biases")


def card_sentences(cards: JudgeCards) -> Iterator[Sentence]:
    """Yield what each judge is worth; without a pair that people labelled too, that there is none."""
    if not cards.cards:
        yield Sentence("say_no_card")
    for card in cards.cards:
        people = card.people
        yield Sentence(
            "say_card" if people.effective_labels.value is not None else "say_card_agreement",
            {
                "judge": card.judge,
                "agreement": percent(people.agreement.value),
                "pairs": count(people.num_pairs),
                "correlation": decimal(people.correlation.value, 2),
                "effective_labels": decimal(people.effective_labels.value, 2),
                "interval": decimal_interval(people.effective_labels),
            },
        )


class _Columns(NamedTuple):
    """The values of one table: the estimates of a group, and whether each is a share."""

    names: tuple[str, ...]
    are_shares: tuple[bool, ...]


_AGREEMENT = _Columns(("agreement", "agreement_of_strict", "kappa"), (True, True, False))
_EFFECTIVE_LABELS = _Columns(("correlation", "effective_labels"), (False, False))
_TITLES = {"agreement_of_strict": "card_strict"}


def _tables(cards: JudgeCards, columns: _Columns) -> Iterator[Grouped]:
    """Yield a table of each judge, whose name stands above: beside the numbers, a long one leaves them no room."""
    titles = [title for name in columns.names for title in (_TITLES.get(name, f"card_{name}"), "interval")]
    for card in cards.cards:
        rows = [(word("all"), *_cells(card.people, columns))]
        rows += [(category_word(name), *_cells(part, columns)) for name, part in card.by_category.items()]
        rows += [(language_word(name), *_cells(part, columns)) for name, part in card.by_language.items()]
        yield Grouped(isolate(card.judge), table(("group", "pairs", *titles), rows))


def _cells(part: PeopleAgreement, columns: _Columns) -> tuple[str, ...]:
    cells = [count(part.num_pairs)]
    for name, is_share in zip(columns.names, columns.are_shares, strict=True):
        estimate = getattr(part, name)
        interval = DASH if estimate.low is None else decimal_interval(estimate)
        cells += PERCENT.cells(estimate) if is_share else (decimal(estimate.value, 2), interval)
    return tuple(cells)


def _bias_rows(card: JudgeCard) -> Iterator[tuple[str, ...]]:
    for name in ("first_preferred", "longer_preferred", "order_flips", "repeat_flips"):
        estimate = getattr(card, name)
        if estimate.value is not None:
            yield card.judge, word(f"card_{name}"), *PERCENT.cells(estimate), count(estimate.n)
    longer = card.longer_than_people
    if longer.value is not None:
        yield card.judge, word("card_longer_than_people"), points(longer.value), points_spread(longer), count(longer.n)
