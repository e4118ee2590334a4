"""Checks of the form of a translation: code, lists, lines and tables, letters of options, and the order of responses.

Code is compared without its comments, without the content of string literals and without blanks at the ends of lines,
since translators translate comments and messages. All else in it, indentation included, has to be equal.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, zip_longest
from math import log
from operator import and_

from steelyard.core.text import is_same_text, normal_form, number_of
from steelyard.translation.bench_lengths import TranslationLengths
from steelyard.translation.damage_kinds import DamageFinding, finding
from steelyard.translation.passages import Passage, PassagePair
from steelyard.translation.wording import LONGEST_REFUSAL, declines

_TRIPLE_QUOTED = r'"""(?:[^"\\]|\\.|"(?!""))*+"""|\'\'\'(?:[^\'\\]|\\.|\'(?!\'\'))*+\'\'\''
_QUOTED = r'[“«„](?:[^”»“\n]){0,300}[”»“]|"(?:[^"\\\n]|\\.)*+"|\'(?:[^\'\\\n]|\\.)*+\''
_BLOCK_COMMENT, _HTML_COMMENT = r"/\*(?:[^*/]|\*(?!/)|/(?!\*))*+\*/", r"<!--(?:[^-<]|-(?!->)|<(?!!--))*+-->"
_LINE_COMMENT = r"(?:(?<=\s)|^)(?:#(?!\w+!|include|define)|//|--\s)[^\n]*"
_LITERAL_OR_COMMENT = re.compile(
    f"{_TRIPLE_QUOTED}|{_QUOTED}|{_BLOCK_COMMENT}|{_LINE_COMMENT}|{_HTML_COMMENT}", re.MULTILINE | re.DOTALL
)
_MASK = "''"
_LINE_ENDS = " \t.\u3002"
"""A line of a program within prose may end the sentence."""
_INDENTATION = re.compile(r"^[ \t]+")
_INLINE_LITERAL = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'')


def check_code(pair: PassagePair) -> Iterator[DamageFinding]:
    """Find code that differs: blocks in order, code within lines as a set, and lines of unfenced programs."""
    source, target = pair
    if source.blocks or target.blocks:
        before, after = (tuple(map(_masked, each.blocks)) for each in pair)
        if before != after:
            yield finding("code", pair, *_first_difference(before, after))
            return
    differing = _set_difference(map(_inline_form, source.inline), map(_inline_form, target.inline))
    if differing is None and (source.code_lines or target.code_lines):
        differing = _set_difference(_program(source), _program(target))
    if differing is not None:
        if differing[0].split() == differing[1].split():
            # Excerpts have no blanks at their ends, and would be equal.
            differing = [_INDENTATION.sub(lambda blanks: "·" * len(blanks[0]), line) for line in differing]
        yield finding("code", pair, *differing)


def _masked(code: str) -> str:
    masked = _LITERAL_OR_COMMENT.sub(lambda match: _MASK if match[0][0] in "\"'“«„" else "", code)
    return "\n".join(line.rstrip() for line in masked.split("\n") if line.strip())


def _first_difference(before: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    """Return the first lines that differ in blocks of one place; a block that one side alone has is whole."""
    left, right = next(each for each in zip_longest(before, after) if each[0] != each[1])
    if left is None or right is None:
        return left or "", right or ""
    lines = zip_longest(left.split("\n"), right.split("\n"), fillvalue="")
    return next(each for each in lines if each[0] != each[1])


def _inline_form(code: str) -> str:
    return "".join(_INLINE_LITERAL.sub(_MASK, code).split())


def _program(passage: Passage) -> list[str]:
    """Return the lines of unfenced programs without comments and the content of literals."""
    lines = _masked("\n".join(passage.code_lines)).split("\n")
    return [line.rstrip(_LINE_ENDS) for line in lines if line.strip(" '\t")]


def _set_difference(before: Iterator[str] | list[str], after: Iterator[str] | list[str]) -> tuple[str, str] | None:
    """Return the first elements that only one side has; null where both have the same ones equally often."""
    left, right = Counter(before), Counter(after)
    lost, added = left - right, right - left
    return None if not lost and not added else (next(iter(lost), ""), next(iter(added), ""))


# --- Lists, lines, tables --------------------------------------------------------------------------------------------

_ITEM = re.compile(r"\s*(?:[-*+•·‣]\s+\S|\(?(?:\d{1,3}|[٠-٩०-९০-৯]{1,3}|[〇一二三四五六七八九十]{1,3})[.)、）．]\s*\S)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s*\S")
_ROW = re.compile(r"\s*\|.*\|\s*$")
_QUOTE = re.compile(r"\s{0,3}>")
_LINES = {"heading": _HEADING, "list item": _ITEM, "table row": _ROW, "quoted line": _QUOTE}
_FEWEST_LINES = 3
_MOST_LINES_OFF = 0.3
_SHORTEST_WRAPPED = 40
"""Characters of a line that may be wrapped; those of lists and poems are shorter."""


def check_structure(pair: PassagePair) -> Iterator[DamageFinding]:
    """Find lists, headings, tables, quotations, paragraphs or lines that differ in number."""
    for name, before, after in _counts(pair):
        if before != after:
            yield finding("structure", pair, *(number_of(number, name) for number in (before, after)))
            return


def _counts(pair: PassagePair) -> Iterator[tuple[str, int, int]]:
    """Yield what is counted, with its number in both texts, the most telling first."""
    for name, pattern in _LINES.items():
        before, after = (sum(pattern.match(line) is not None for line in each.lines) for each in pair)
        # One such line may be a sentence that begins with a number or a dash.
        if max(before, after) > 1 or name == "heading":
            yield name, before, after
    before, after = (sum(line.count("|") for line in each.lines if _ROW.match(line)) for each in pair)
    yield "cell", before, after
    yield "paragraph", pair.source.num_paragraphs, pair.target.num_paragraphs
    lines = [len(each.lines) for each in pair]
    # A wrapped sentence may be written in one line, and a text be wrapped at another place.
    whole = [each.once(_num_unwrapped) for each in pair]
    difference = max(whole[0] - lines[1], whole[1] - lines[0])
    if max(lines) >= _FEWEST_LINES and difference > max(1, _MOST_LINES_OFF * max(lines)):
        yield "line", lines[0], lines[1]


def _num_unwrapped(passage: Passage) -> int:
    """Return the number of lines without those that go on with the sentence of a long line, in small letters."""
    lines = [line.strip() for line in passage.lines]
    is_open = (len(line) >= _SHORTEST_WRAPPED and (line[-1].isalnum() or line[-1] == ",") for line in lines)
    return len(lines) - sum(map(and_, is_open, (line[0].islower() for line in lines[1:])))


# --- Options and verdicts --------------------------------------------------------------------------------------------

_OPTION = re.compile(r"^[ \t]*[*_]{0,2}[(（]?([A-Ha-h])[)）.:：、][*_]{0,2}(?:[ \t]+|(?<=[）：、]))\S", re.MULTILINE)
_ANY_OPTION = re.compile(r"^[ \t]*[*_]{0,2}[(（]?(\w)[)）.:：、][*_]{0,2}[ \t]*\S", re.MULTILINE)
_VERDICT = re.compile(r"\[\[([^\[\]\n]{1,20})\]\]")
_CHOICE = re.compile(
    r"\b(?:[Aa]nswer|ANSWER|[Oo]ption|[Cc]hoice|[Rr]esponse|[Aa]ssistant)s?(?: is)?\s{0,2}:?\s{0,2}"
    r"[*_(\[\"']{0,3}([A-E])\b(?!['’])"
)
_LONE_LETTER = re.compile(r"(?<![A-Za-z])([A-E])(?![A-Za-z])")
_FEWEST_OPTIONS = 2


def check_options(pair: PassagePair) -> Iterator[DamageFinding]:
    """Find letters of options and verdicts that the translation changed: ``A)``, ``[[B]]``, ``Answer: C``."""
    source, target = pair.source.prose, pair.target.prose
    options, translated = (_OPTION.findall(text) for text in (source, _plain(target)))
    # A single letter may be an initial or be written as a word; another letter in its place is a changed choice.
    if options != translated and (len(options) >= _FEWEST_OPTIONS or len(options) == len(translated)):
        yield finding("option_letter", pair, " ".join(options), " ".join(_ANY_OPTION.findall(target)))
        return
    verdicts = Counter(_VERDICT.findall(source)), Counter(_VERDICT.findall(target))
    if verdicts[0] - verdicts[1]:
        yield finding("option_letter", pair, *(" ".join(f"[[{each}]]" for each in verdict) for verdict in verdicts))
        return
    lost = [letter for letter in _CHOICE.findall(source) if letter not in _LONE_LETTER.findall(_plain(target))]
    if lost:
        yield finding("option_letter", pair, lost[0], target)


_FULL_WIDTH = str.maketrans({chr(0xFF21 + place): chr(0x41 + place) for place in range(26)})


def _plain(text: str) -> str:
    return text.translate(_FULL_WIDTH)


# --- Responses -------------------------------------------------------------------------------------------------------

_DECISIVE = 1.2
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{2,}")
_DIGIT_RUN = re.compile(r"\d+")
_MOST_RESPONSES = 12


def check_equal(pairs: Sequence[PassagePair]) -> Iterator[DamageFinding]:
    """Find responses that are equal in the translation and differ in the source."""
    texts = [pair.target.text for pair in pairs]
    if len(texts) <= _MOST_RESPONSES and not any(is_same_text(*both) for both in combinations(texts, 2)):
        return
    first_by_form: dict[str, int] = {}
    for place, pair in enumerate(pairs):
        after = normal_form(pair.target.text)
        first = first_by_form.setdefault(after, place)
        if after and first != place and normal_form(pairs[first].source.text) != normal_form(pair.source.text):
            yield DamageFinding(
                kind="equal_responses",
                place="responses",
                before=f"{pairs[first].target.place}, {pair.target.place}",
                after=finding("equal_responses", pair, "", pair.target.text).after,
            )


def check_swapped(pairs: Sequence[PassagePair], usual: TranslationLengths) -> Iterator[DamageFinding]:
    """Find two responses whose translations fit better the other way round, where the difference is decisive."""
    for first, second in combinations(pairs[:_MOST_RESPONSES], 2):
        if first.source.text == second.source.text:
            continue
        straight = _misfit(*first, usual) + _misfit(*second, usual)
        crossed = _misfit(first.source, second.target, usual) + _misfit(second.source, first.target, usual)
        if _is_exchanged(first, second) or straight - crossed > _DECISIVE:
            names = f"{first.target.place}, {second.target.place}"
            yield DamageFinding(kind="swapped_responses", place="responses", before=names, after=names)


def _is_exchanged(first: PassagePair, second: PassagePair) -> bool:
    """Return whether two texts that are not translated, such as programs, have changed places, or code in them has."""
    texts = [[each.text.strip() for each in pair] for pair in (first, second)]
    if texts[0] == texts[1][::-1]:
        return True
    codes = [[each.once(_code) for each in pair] for pair in (first, second)]
    return bool(codes[0][0]) and codes[0][0] != codes[1][0] and codes[0] == codes[1][::-1]


def _numbers(passage: Passage) -> Counter[str]:
    return Counter(_DIGIT_RUN.findall(passage.prose))


def _names(passage: Passage) -> Counter[str]:
    """Return the words in Latin letters, which are names in texts of other scripts."""
    return Counter(map(str.lower, _NAME.findall(passage.prose)))


def _code(passage: Passage) -> Counter[str]:
    return Counter([*map(_masked, passage.blocks), *map(_inline_form, passage.inline), *_program(passage)])


def _form(passage: Passage) -> tuple[int, ...]:
    """Return the numbers of list items, headings, rows of tables, and of all lines."""
    kinds = (sum(pattern.match(line) is not None for line in passage.lines) for pattern in (_ITEM, _HEADING, _ROW))
    return *kinds, len(passage.lines)


_WEIGHTS = {_numbers: 2, _names: 2, _code: 4}
"""Parts of a text that a translation keeps, and how much each says that a text is one."""


def _misfit(source: Passage, target: Passage, usual: TranslationLengths) -> float:
    """Return how badly a translation fits a source: what it keeps, most of all code, its lines, and its length."""
    misfit = sum(weight * _distance(source.once(read), target.once(read)) for read, weight in _WEIGHTS.items())
    # One response declines, and the other one does as it was asked.
    is_short = max(source.size, target.size) <= LONGEST_REFUSAL
    misfit += is_short and source.once(declines) != target.once(declines)
    forms = zip(source.once(_form), target.once(_form), strict=True)
    misfit += sum(abs(left - right) / max(left, right, 1) for left, right in forms)
    size = source.size + 1
    ratio = log((target.size + 1) / size) - usual.log_ratio
    return misfit + min(4.0, (ratio / (usual.spread_at(size) + 0.1)) ** 2 / 4)


def _distance(before: Counter[str], after: Counter[str]) -> float:
    """Return the share of elements that only one of two has: 0 for equal ones or none."""
    union = (before | after).total()
    return 1 - (before & after).total() / union if union else 0.0
