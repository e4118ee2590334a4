"""Cards of judges on the page: agreement and correlation with people, what a judge is worth, biases, and flips."""

from collections.abc import Iterator

from steelyard.evaluation.tables import (
    DASH,
    PERCENT,
    Grouped,
    Panel,
    Sentence,
    Table,
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
    """Yield a panel of agreement with people, overall and by group, and one of biases and flips."""
    if not cards.cards:
        return
    yield Panel(word("card"), None, tuple(_agreement_tables(cards)), "note_card")
    yield Panel(word("card_biases"), None, (Grouped("judge", _bias_table(cards)),), "note_card_biases")


def card_sentences(cards: JudgeCards) -> Iterator[Sentence]:
    """Yield what each judge is worth."""
    for card in cards.cards:
        people = card.people
        yield Sentence(
            "say_card" if people.worth.value is not None else "say_card_agreement",
            {
                "judge": card.judge,
                "agreement": percent(people.agreement.value),
                "pairs": count(people.num_pairs),
                "correlation": decimal(people.correlation.value, 2),
                "worth": decimal(people.worth.value, 2),
                "interval": decimal_interval(people.worth),
            },
        )


def _agreement_tables(cards: JudgeCards) -> Iterator[Grouped]:
    """Yield a table of each judge, whose name stands above: beside the numbers, a long one leaves them no room."""
    columns = (
        "group", "pairs", "card_agreement", "interval", "card_strict", "interval", "card_kappa", "interval",
        "card_correlation", "interval", "card_worth", "interval",
    )  # fmt: skip
    for card in cards.cards:
        rows = [(word("all"), *_cells(card.people))]
        rows += [(category_word(name), *_cells(part)) for name, part in card.by_category.items()]
        rows += [(language_word(name), *_cells(part)) for name, part in card.by_language.items()]
        yield Grouped(isolate(card.judge), table(columns, rows))


def _cells(part: PeopleAgreement) -> tuple[str, ...]:
    shares = (*PERCENT.cells(part.agreement), *PERCENT.cells(part.agreement_of_strict))
    numbers = (
        cell
        for estimate in (part.kappa, part.correlation, part.worth)
        for cell in (decimal(estimate.value, 2), DASH if estimate.low is None else decimal_interval(estimate))
    )
    return (count(part.num_pairs), *shares, *numbers)


def _bias_table(cards: JudgeCards) -> Table:
    rows = [row for card in cards.cards for row in _bias_rows(card)]
    return table(("judge", "card_bias", "value", "interval", "n"), rows)


def _bias_rows(card: JudgeCard) -> Iterator[tuple[str, ...]]:
    for name in ("first_preferred", "longer_preferred", "order_flips", "repeat_flips"):
        estimate = getattr(card, name)
        if estimate.value is not None:
            yield card.judge, word(f"card_{name}"), *PERCENT.cells(estimate), count(estimate.n)
    longer = card.longer_than_people
    if longer.value is not None:
        yield card.judge, word("card_longer_than_people"), points(longer.value), points_spread(longer), count(longer.n)
