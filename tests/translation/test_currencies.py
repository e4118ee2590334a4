"""Sums of money: those converted into another currency are no changed numbers, and all others are."""

from each_value import each
from steelyard.core.types import Case, Message, Prompt
from steelyard.translation.bench_lengths import LengthLimits
from steelyard.translation.damage import find_damage
from steelyard.translation.language_tables import currencies, damage_table


def number_findings(source: str, target: str, language: str) -> list[tuple[str, str]]:
    """The numbers that a translation lost and those that it added."""
    cases = [
        Case(prompt=Prompt(id="p", messages=(Message(role="user", content=text),), language=code), responses=())
        for text, code in ((source, "en"), (target, language))
    ]
    found = find_damage(*cases, limits=LengthLimits(pairs={}), languages=None)
    return [(each.before, each.after) for each in found if each.kind == "number"]


@each(
    ("source", "target", "language"),
    [
        ("It costs at least $250 a night.", "하룻밤에 적어도 30만 원은 든다.", "ko"),
        ("They pay $2 for a card worth $82 dollars.", "10만원 상품권을 받으려면 3000원을 내야 한다.", "ko"),
        ("It costs at least $250 a night.", "มีราคาอย่างน้อย 8800 บาทต่อคืน", "th"),
        ("It costs at least $250 a night.", "Inagharimu angalau KES35,000 kwa usiku.", "sw"),
        ("It costs at least $250 a night.", "Es kostet mindestens 230 Euro pro Nacht.", "de"),
        ("It costs at least $250 a night.", "一晚至少要花1800元。", "zh"),
        ("The rent is 900 euros.", "Аренда стоит 80 000 рублей.", "ru"),
        ("It costs £40.", "Kosztuje 190 zł.", "pl"),
    ],
)
def test_a_sum_in_another_currency_is_no_changed_number(source, target, language):
    assert number_findings(source, target, language) == []


@each(
    ("source", "target", "language"),
    [
        ("It costs at least $250 a night.", "Es kostet mindestens 280 Dollar pro Nacht.", "de"),
        ("It costs at least $250 a night.", "Es kostet mindestens 2500 Euro pro Nacht.", "de"),
        ("It costs at least $250 a night.", "하룻밤에 적어도 30원은 든다.", "ko"),
        ("It has 250 rooms.", "30만 원이다.", "ko"),
        ("It costs at least $250 a night.", "Es hat mindestens 230 Zimmer.", "de"),
    ],
)
def test_another_sum_in_one_currency_or_a_sum_of_another_worth_is_a_changed_number(source, target, language):
    assert len(number_findings(source, target, language)) == 1


def test_every_currency_has_a_rate_and_a_word_of_its_own():
    table = currencies()
    for code, entry in damage_table().currencies.items():
        assert table.rates[code] > 0, code
        word = entry.split()[1]
        match = table.before.search(f"{word} ")
        assert match is not None, f"{word} is not read"
        assert match.lastgroup == code, f"{word} is read as {match.lastgroup}"
