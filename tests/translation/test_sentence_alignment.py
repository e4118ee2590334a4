"""Where sentences end, which of them are translations of each other, and which are missing."""

import time
from functools import cache
from math import inf, log

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from each_value import each
from steelyard.translation.bench_lengths import TranslationLengths
from steelyard.translation.passages import Passage, PassagePair
from steelyard.translation.sentence_alignment import align_sentences, check_sentences

RARELY_JOINED = TranslationLengths(num_texts=100, spread=0.3, short_spread=2.0, ends=1.0, joined=0.001)
OFTEN_JOINED = TranslationLengths(num_texts=100, spread=0.3, short_spread=2.0, ends=1.0, joined=0.3)


def passage_pair(source: str, target: str, language: str = "de") -> PassagePair:
    return PassagePair(Passage("prompt", source, "en"), Passage("prompt", target, language))


def missing(source: str, target: str, usual: TranslationLengths = RARELY_JOINED) -> list[str]:
    return [finding.before for finding in check_sentences(passage_pair(source, target), usual)]


@each(
    ("text", "language", "number"),
    [
        ("All numbers are below threshold t. The input is a list.", "en", 2),
        ("It counts from 1 to n. (Both count.)", "en", 2),
        ("They consist only of 1s and 0. Perform it.", "tl", 2),
        ("It began in 2020. Nobody knew.", "de", 2),
        ("Am 3. Mai begann es.", "de", 1),
        ("Das ist ein Tier, z. B. Hunde und d. h. Katzen.", "de", 1),
        ("The book is by J. Smith and Dr. Jones.", "en", 1),
        ("1. Open the door.", "en", 1),
        ("12. Open the door. Close it.", "en", 2),
        ("See Fig. 3 and No. 7 there.", "en", 1),
        ("It barks until 2 a.m. What can I do?", "en", 2),
        ("He landed at 10:56 p.m. New York time.", "en", 1),
        ("It leaves at 6:45 a.m. on Monday.", "en", 1),
        ("Call before 5 p.m. EST today.", "en", 1),
        ("Γαβγίζει μέχρι τις 2 π.μ. Τι να κάνω;", "el", 2),
        ("Πόση ώρα το βράζω; Δεν μου αρέσει.", "el", 2),
        ("Jaa matka: 240 / 3 = 80. Keskinopeus on 80.", "fi", 2),
        ("Das sind 240 / 3 = 80. Die Strecke ist lang.", "de", 2),
        ("Cevap 80. Bu doğru.", "tr", 2),
        ("Se tapahtui 20. heinäkuuta.", "fi", 1),
    ],
)
def test_a_sentence_ends_with_a_full_stop_that_belongs_to_no_letter_or_number(text, language, number):
    assert len(Passage("prompt", text, language).sentences) == number


def test_a_short_sentence_is_missing_where_the_bench_rarely_joins_any():
    source = "The girl lost control of her bicycle in the street. I waved. The man saw an alien in the garden."
    target = "Das Mädchen verlor auf der Straße die Kontrolle über ihr Rad. Der Mann sah im Garten einen Alien."
    assert missing(source, target) == []
    # "I waved." has 6 letters; 8 are needed.
    longer = source.replace("I waved.", "I waved to her.")
    assert missing(longer, target) == ["I waved to her."]
    assert missing(longer, target, OFTEN_JOINED) == []
    never_joined = replace(RARELY_JOINED, joined=0.0)
    assert missing(longer, target, never_joined) == ["I waved to her."], "a large bench's rate, rounded"


def test_a_sentence_of_numbers_alone_is_missing_where_the_translation_has_none_of_them():
    source = "He wore an old hat. They left the house. (1998; 45 %)\nThe door was open."
    target = "Er trug einen alten Hut. Sie verließen das Haus. \nDie Tür war offen."
    assert missing(source, target) == ["(1998; 45 %)"]
    seldom_joined = replace(RARELY_JOINED, joined=0.05)
    assert missing(source, target, seldom_joined) == ["(1998; 45 %)"]
    assert missing(source, target.replace("Haus. ", "Haus 1998 zu 45 %. "), seldom_joined) == []


def test_numbers_and_names_decide_which_of_two_sentences_of_equal_length_is_missing():
    source = "Anna Kowalska paid 120 dollars. Peter Novotny paid 350 dollars. All of them went home again."
    for name, number, lost in (("Anna Kowalska", 120, "Peter Novotny"), ("Peter Novotny", 350, "Anna Kowalska")):
        target = f"{name} zahlte {number} Dollar. Alle gingen dann wieder nach Hause."
        (before,) = missing(source, target)
        assert before.startswith(lost)


def test_the_beads_of_a_text_without_a_loss_are_pairs_in_order():
    source = "He saw it. She took the 7 apples to Berlin. They left."
    target = "Er sah es. Sie brachte die 7 Äpfel nach Berlin. Sie gingen."
    beads = align_sentences(passage_pair(source, target), RARELY_JOINED)
    assert [(list(each.source), list(each.target)) for each in beads] == [([0], [0]), ([1], [1]), ([2], [2])]


@given(
    st.lists(st.sampled_from(["A cat. ", "The dog of 7 kings sleeps here. ", "No! ", "x ", "12. "]), max_size=20),
    st.lists(st.sampled_from(["Eine Katze. ", "Der Hund von 7 Kings schläft. ", "Nein! ", "y "]), max_size=20),
)
def test_beads_cover_every_sentence_of_both_texts_once_in_order(source, target):
    pair = passage_pair("".join(source), "".join(target))
    beads = align_sentences(pair, RARELY_JOINED)
    assert [place for each in beads for place in each.source] == list(range(len(pair.source.sentences)))
    assert [place for each in beads for place in each.target] == list(range(len(pair.target.sentences)))


SIZES = (4, 9, 20, 45, 90)
STEPS = {
    (1, 1): 0.0,
    (1, 2): 1.0,
    (2, 1): -log(0.3),
    (1, 3): 3.0,
    (3, 1): 1 - 2 * log(0.3),
    (2, 2): 1 - log(0.3),
    (1, 0): 3.0,
    (0, 1): 4.0,
}
"""The kinds of beads where three in ten sentences are joined, with what each costs beside its lengths."""


def bead_cost(before: list[int], after: list[int]) -> float:
    """The cost of sentences of so many letters that are each other's translation, by the formula of the module."""
    cost = STEPS[len(before), len(after)]
    if before and after:
        sizes = sum(each + 1 for each in before), sum(each + 1 for each in after)
        cost += log(sizes[1] / sizes[0]) ** 2 / (0.3**2 + 2.0**2 / sizes[0]) / 2
    return cost


@given(
    st.lists(st.sampled_from(SIZES), min_size=1, max_size=6), st.lists(st.sampled_from(SIZES), min_size=1, max_size=6)
)
def test_no_other_alignment_of_sentences_costs_less(before, after):
    @cache
    def least(row: int, column: int) -> float:
        if (row, column) == (0, 0):
            return 0.0
        ways = [(row - down, column - over) for down, over in STEPS if down <= row and over <= column]
        return min((least(up, left) + bead_cost(before[up:row], after[left:column]) for up, left in ways), default=inf)

    # Letters that are no anchors: no word is in both texts.
    source = " ".join("A" + "b" * (size - 1) + "." for size in before)
    target = " ".join("Ж" + "д" * (size - 1) + "." for size in after)
    beads = align_sentences(passage_pair(source, target, "ru"), OFTEN_JOINED)
    costs = [bead_cost([before[i] for i in each.source], [after[i] for i in each.target]) for each in beads]
    assert abs(sum(costs) - least(len(before), len(after))) < 1e-9


@each(
    ("language", "joined", "statement"),
    [
        (
            "de",
            "Ich bin die Treppe hinuntergefallen, was soll ich denn jetzt nur tun?",
            "Ich bin die Treppe hinuntergefallen.",
        ),
        ("ko", "나 방금 계단에서 넘어졌는데 이제 어떻게 해야 할지 생각나는 거 있어?", "나 방금 계단에서 넘어졌어."),
        ("ar", "لقد سقطت للتو من على الدرج، فهل لديكم أي نصيحة لي الآن؟", "لقد سقطت للتو من على الدرج."),
    ],
)
def test_a_text_that_ends_as_a_question_has_not_lost_its_last_question(language, joined, statement):
    source = "I have just fallen down the stairs. Any advice for me now?"
    usual = replace(RARELY_JOINED, joined=0.03)
    assert list(check_sentences(passage_pair(source, joined, language), usual)) == []
    assert len(list(check_sentences(passage_pair(source, statement, language), usual))) == 1


@each("piece", ["a. ", "1. ", "1", "word7 8 ", "A7. ", ". "])
def test_hostile_texts_are_aligned_in_a_second_or_two(piece):
    number = 60_000 // len(piece)
    start = time.process_time()
    list(check_sentences(passage_pair(piece * number, piece * (number // 2)), RARELY_JOINED))
    assert time.process_time() - start < 4.0, "seconds for 60,000 characters"


def test_a_label_is_missing_however_short_it_is():
    source = "Return the sum of all numbers in the list that are even.\nExample:"
    target = "Renvoyez la somme de tous les nombres pairs qui sont dans cette liste."
    found = check_sentences(passage_pair(source, target, "fr"), OFTEN_JOINED)
    assert [each.before for each in found] == ["Example:"]
    assert not list(check_sentences(passage_pair(source, f"{target} Exemple : f(1)", "fr"), OFTEN_JOINED))
