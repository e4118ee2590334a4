"""Check of negation: a word of negation that the translation lost or added, in the clear cases only.

Languages negate by other means than words of negation: by prefixes, verbs such as "lack", or not at all. A negation is
lost where the source has a word of negation and the translation has none, nor more idioms and words such as "without"
than the source; also where the whole text has fewer words of negation than the source has, and where a property such
as "non-empty" has no word of negation of any kind beside it in the translation. It is added where the
translation has one and the source has none, unless the source has more idioms and words such as "without" or "refuse"
than the translation. Sentences are compared one by one, aligned by their lengths where their numbers differ. Languages
without a table of words are not checked.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from steelyard.core.language_words import GAP, SIGNS, any_of, fold, language_words, whole_words
from steelyard.translation.bench_lengths import TranslationLengths
from steelyard.translation.damage_kinds import DamageFinding, finding
from steelyard.translation.language_tables import WITHOUT_SPACES, damage_table
from steelyard.translation.passages import Passage, PassagePair
from steelyard.translation.sentence_alignment import Bead, align_sentences

_DOUBLED = {"af"}
"""Languages that write a negation twice, before and after what is negated: "Dit is nie 'n getal nie"."""
_QUOTED_WORD = re.compile(r"[\"“„«「『]\w+[\"”“»」』]")


class Negations(NamedTuple):
    """The negations of a language, as patterns over folded text."""

    roles: re.Pattern[str]
    """All words of negation, each in a group named by its role.

    ``proof``: a word that proves a negation. ``concord``: one that accompanies such a word and negates nothing more,
    as in "no vio nada". ``near``: one such as "without" or "refuse". ``idiom``: a phrase with a word of negation that
    negates nothing. ``prefixed``: a property such as "non-empty". ``if_not`` and ``otherwise``: phrases for
    "otherwise", with and without a word of negation. ``neutral``: a word that only looks like one of these, as "und"
    like one with "un-".
    """
    only: re.Pattern[str] | None
    """Words for "only", which an idiom such as "not only" turns into their reverse."""


@cache
def negations(language: str) -> Negations | None:
    """Return the patterns of a language's negations, over folded text; null where no table has them."""
    table, verdicts = damage_table(), language_words().get(language)
    neutral, idioms, prefixed, proof, concord, near, only, otherwise = (
        [phrase.replace("_", " ").replace("…", GAP) for phrase in each.get(language, "").split()]
        for each in (
            *(table.neutral, table.idioms, table.prefixed, table.negation, table.concord, table.negative),
            *(table.only, table.otherwise),
        )
    )
    prefixed = [phrase.replace(" ", join) for phrase in prefixed for join in (" ", "-", "")]
    if verdicts is not None:
        words = [prefix + word for prefix in ("", *verdicts.prefixes) for word in verdicts.negation]
        proof, near, idioms = (
            # After a plus sign the words are added to those of the verdicts.
            proof[1:] + words if proof[:1] == ["+"] else proof or words,
            near + words,
            idioms + [each for each in verdicts.idioms if each not in {*proof, *near, *otherwise}],
        )
    if not proof:
        return None
    is_inside = language in WITHOUT_SPACES
    start, end, bounded = ("", "", any_of) if is_inside else (f"(?<![{SIGNS}])", f"(?![{SIGNS}])", whole_words)
    is_negated = re.compile(f"{start}{any_of(map(fold, proof))}{end}").search
    if_not = [phrase for phrase in otherwise if is_negated(fold(phrase))]
    # The first role that has a word takes it.
    roles = {"neutral": neutral, "prefixed": prefixed, "idiom": idioms, "if_not": if_not, "otherwise": otherwise}
    roles |= {"proof": proof, "concord": concord, "near": near}
    patterns = {name: any_of(set(map(fold, words))) for name, words in roles.items() if words}
    if is_inside:
        # A longer word of negation is one: 不同 is "different", 不同意 "disagree".
        longer = {fold(word) for word in proof if word.startswith((*neutral, *idioms)) and word not in idioms}
        patterns |= {
            name: f"(?!{any_of(longer)}){patterns[name]}"
            for name in ("neutral", "idiom")
            if name in patterns and longer
        }
    groups = [f"(?P<{name}>{pattern}{end})" for name, pattern in patterns.items()]
    # The beginning of a word is looked for once, not once for each role.
    first = {word[:1] for words in roles.values() for word in map(fold, words)}
    start += "" if "*" in first else f"(?=[{re.escape(''.join(sorted(first)))}])"
    pattern = re.compile(f"{start}(?:{'|'.join(groups)})")
    return Negations(pattern, re.compile(bounded(set(map(fold, only)))) if only else None)


class _Sentence(NamedTuple):
    text: str
    folded: str
    proof: int
    is_doubled: bool
    """True for a language that closes a negation by a second word."""
    near: int
    """The number of words such as "without"."""
    idioms: int
    concord: int
    prefixed: int
    """The number of idioms that are properties such as "non-empty"."""
    if_not: int
    otherwise: int
    not_only: bool

    @property
    def num_words(self) -> int:
        """The number of all words of negation."""
        return self.proof + self.near + self.idioms + self.concord

    @property
    def fewest(self) -> int:
        """The least number of negations that the words which prove one stand for."""
        return (self.proof + 1) // 2 if self.is_doubled else self.proof

    def compared_with(self, other: "_Sentence") -> "_Sentence":
        """Return the sentence where "if not" is a negation, unless the other one has a word for "otherwise"."""
        negated = max(0, self.if_not - other.if_not - other.otherwise)
        return self._replace(proof=self.proof + negated) if negated else self


def check_negation(pair: PassagePair, usual: TranslationLengths) -> Iterator[DamageFinding]:
    """Find the first sentence whose negation is lost or added."""
    source_words, target_words = negations(pair.source.code), negations(pair.target.code)
    if source_words is None or target_words is None or pair.source.code == pair.target.code:
        return
    source, target = pair.source.sentences, pair.target.sentences
    if not any(each.proof or each.if_not or each.prefixed for each in pair.source.once(_read_each)) and not any(
        each.proof or each.if_not or each.not_only for each in pair.target.once(_read_each)
    ):
        return
    if len(source) != len(target):
        if not source or not target:
            return
        beads = align_sentences(pair, usual) if max(len(source), len(target)) > 2 else ()
        beads = [bead for bead in beads if bead.source and bead.target] or [
            Bead(range(len(source)), range(len(target)))
        ]
    else:
        beads = [Bead(range(place, place + 1), range(place, place + 1)) for place in range(len(source))]
    joined = [(_joined(pair.source, bead.source), _joined(pair.target, bead.target)) for bead in beads]
    pairs = [(before.compared_with(after), after.compared_with(before)) for before, after in joined]
    for before, after in pairs:
        # Words that may be a negation in the other language, or none: an idiom, or a word such as "without".
        excuses = before.near + before.idioms
        is_lost = before.proof and not after.proof and after.num_words <= excuses
        # A property such as "non-empty" is its reverse where nothing at all is negated.
        is_lost = is_lost or (before.prefixed and not after.num_words)
        is_added = after.proof and not before.proof and after.near + after.idioms >= excuses + before.concord
        is_reversed = (
            after.not_only
            and not before.num_words
            and source_words.only is not None
            and source_words.only.search(before.folded) is not None
        )
        if is_lost or is_added or is_reversed:
            yield finding("negation", pair, before.text, after.text)
            return
    # Sentences that are aligned wrongly hide a loss from each other, but not from the whole text.
    if sum(after.num_words for _, after in pairs) < sum(before.fewest for before, _ in pairs):
        before, after = max(pairs, key=lambda both: both[0].fewest - both[1].num_words)
        yield finding("negation", pair, before.text, after.text)


def _joined(passage: Passage, places: range) -> _Sentence:
    """Return the negations of sentences that follow each other, as those of one sentence."""
    if len(places) == 1:
        return passage.once(_read_each)[places[0]]
    return _read(" ".join(passage.sentences[place] for place in places), passage.code)


def _read_each(passage: Passage) -> list[_Sentence]:
    return [_read(sentence, passage.code) for sentence in passage.sentences]


def _read(sentence: str, language: str) -> _Sentence:
    words = negations(language)
    assert words is not None, "languages without words are not read"
    # A word in quotation marks is the name of an output: return "NO".
    text = f" {fold(_QUOTED_WORD.sub(' ', sentence))} "
    matches = list(words.roles.finditer(text))
    roles = [match.lastgroup for match in matches]
    return _Sentence(
        text=sentence,
        folded=text,
        proof=roles.count("proof"),
        is_doubled=language in _DOUBLED,
        near=roles.count("near"),
        idioms=roles.count("idiom") + roles.count("prefixed"),
        concord=roles.count("concord"),
        prefixed=roles.count("prefixed"),
        if_not=roles.count("if_not"),
        otherwise=roles.count("otherwise"),
        not_only=words.only is not None
        and any(words.only.search(f" {match[0].strip()} ") for match in matches if match.lastgroup == "idiom"),
    )
