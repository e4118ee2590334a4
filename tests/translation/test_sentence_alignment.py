"""Where sentences end, which of them are translations of each other, and which are missing."""

import time

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


@each("piece", ["a. ", "1. ", "1", "word7 8 ", "A7. ", ". "])
def test_hostile_texts_are_aligned_in_a_second_or_two(piece):
    number = 60_000 // len(piece)
    start = time.process_time()
    list(check_sentences(passage_pair(piece * number, piece * (number // 2)), RARELY_JOINED))
    assert time.process_time() - start < 4.0, "seconds for 60,000 characters"
