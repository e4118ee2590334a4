"""The text of a prompt or a response, its length, its markup and its identity: one definition each for all parts.

The length is the number of Unicode code points of all turns. The markup is the number of Markdown marks of all turns,
outside code; a block of code is one mark. Joining turns into one text adds line breaks, which count for neither.
The identity of a text is its `normal_form`: splits, checks of leaks, units of resampling and duplicates compare it.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from math import floor, log10

from steelyard.core.names import UNSEEN
from steelyard.core.types import Case, Message, Prompt, Response

_MOST_DIGITS = 1000
# Fences are taken out first, so that nothing inside code counts. Every repetition stops at the mark that could begin
# the next match, so that the time is linear in the length of any text.
_FENCE = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_LINE_MARK = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+\S"  # heading
    r"|[-*+•][ \t]+\S|\d{1,3}[.)][ \t]+\S|\d{1,3}、[ \t]*\S"  # list item
    r"|>[ \t]*\S"  # quotation
    r"|\|.*\|[ \t]*$"  # table row
    r"|(?:-{3,}|\*{3,}|_{3,})[ \t]*$)",  # rule
    re.MULTILINE,
)
_INLINE_MARK = re.compile(
    r"`[^`\n]+`"  # code
    r"|\*\*(?=\S)(?:(?!\*\*).)+(?<=\S)\*\*|__(?=\S)(?:(?!__).)+(?<=\S)__"  # bold
    r"|\[[^\[\]\n]+\]\([^)\[\n]+\)"  # link or image
)

# Case is part of code and of formulas. A dollar sign before a digit is a price, unless a formula ends before it.
_EXACT = re.compile(
    r"^ {0,3}(?P<fence>```|~~~).*?(?:^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|`[^`\n]+`"
    r"|\$\$[^$]+\$\$|\$(?=[^\s$])[^$\n]*(?<=\S)\$(?!\d)"
    r"|\\\((?:[^\\]|\\(?![()]))*+\\\)|\\\[(?:[^\\]|\\(?![\[\]]))*+\\\]"
    r"|\\[A-Za-z]+",
    re.MULTILINE | re.DOTALL,
)
_EXACT_MARKS = ("`", "~~~", "$", "\\")
"""Every exact part has one of these, for which a text is searched faster."""
_CJK = (
    r"\u2e80-\u2fff\u3001-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
"""Characters of scripts without spaces between words: Han, kana, Bopomofo, and their punctuation."""
_IS_CJK = re.compile(f"[{_CJK}]")
# A blank first: it fails on most characters faster than what stands before it.
_BLANK_BESIDE_CJK = re.compile(rf"(?=[^\S\n])(?:(?<=[{_CJK}])[^\S\n]+(?=\S)|(?<=\S)[^\S\n]+(?=[{_CJK}]))")
_INVISIBLE = re.compile(f"[{UNSEEN}\u0640\u180b-\u180f\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Characters without a shape of their own: unseen ones, joiners, variation selectors, and the Arabic tatweel."""
_JOINED = (
    r"\u00a9\u00ae\u0600-\u109f\u1780-\u18af\u1900-\u1cff\u20e3\u2190-\u2bff\ua800-\uabff\ufb50-\ufdff\ufe0e\ufe0f"
    r"\ufe70-\ufefc\U00011000-\U00011fff\U0001e900-\U0001e95f\U0001f000-\U0001faff"
)
"""Scripts that need joiners within words, and the pictures that joiners make one of."""
_UNSPACED = r"\u0e00-\u109f\u1780-\u17ff\u1950-\u1aaf"
"""Scripts that mark the place of a line break by a space without width."""
HIDDEN_CHARACTERS = re.compile(
    r"(?P<flag>\U0001f3f4[\U000e0020-\U000e007f]+)|(?P<hidden>(?:[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u115f\u1160"
    r"\u17b4\u17b5\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e00ff\ud800-\udfff]"
    rf"|(?<![{_UNSPACED}])\u200b(?![{_UNSPACED}])|(?<![{_JOINED}])[\u200c\u200d\u180e](?![{_JOINED}])"
    r"|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,})+)"
)
"""Characters of a text that hide or reorder others, as pages show them by their codes (group ``hidden``).

Marks of direction (U+200E, U+200F, U+061C), which people type between scripts, joiners and breaks where a script needs
them, single variation selectors and the flags of regions are part of the writing.
"""
_MOST_CODES = 6
_OPTIONAL_MARK = re.compile(r"(?:ARABIC|HEBREW) |.* NUKTA$")
"""Names of combining marks that readers add or leave out: vowel signs, points, nuktas."""
_WRITTEN_FORM = re.compile("<(?:wide|narrow|compat|noBreak|isolated|initial|medial|final|vertical|small|square)>")
"""Compatibility forms of one character. Superscripts, fractions, and circled or styled signs differ in meaning."""
_VARIANTS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),  # curly quotation marks
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),  # hyphens, dashes, the minus sign
        **dict.fromkeys("\u0622\u0623\u0625\u0671", "\u0627"),  # Arabic alef with hamza, madda or wasla
        **dict.fromkeys("\u0649\u06cc", "\u064a"),  # the dotless and the Persian yeh
        "\u06a9": "\u0643",  # the Persian kaf
        "\u301c": "~",  # the wave dash of Japanese
        **dict.fromkeys("\x0b\x0c\x85\u2028\u2029", "\n"),
    }
)
_MOST_MARKS = 30
"""Combining marks in a row that count (Unicode, Stream-Safe Text Format): sorting more takes quadratic time."""
_TAB = 8
_END, _DECISIVE = 64, 16
"""The characters at each end of two texts that are folded before whole texts, and those of them that are compared."""
_MOST_TEXTS = 64
_FILLERS = "\u2800\u3164\u115f\u1160\uffa0"
"""Letters without a visible form: the blank of Braille and the fillers of Hangul."""


def number_of(number: int, noun: str, plural: str = "") -> str:
    """Format a count with its noun: ``1 judgment``, ``1,200 judgments``; ``plural`` where an s is not enough."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def money_text(amount: float) -> str:
    """Format an amount of money with two decimals, and a small one with two digits: ``1,200.00``, ``0.0013``."""
    decimals = 2 if not amount or abs(amount) >= 0.1 else 1 - floor(log10(abs(amount)))
    return f"{amount:,.{decimals}f}"


def natural_order(name: str) -> list[tuple[int, str]]:
    """Return a sort key by which the numbers in names count as numbers: batch 9 comes before batch 10."""
    # Longer runs of digits are taken in parts, as they are no numbers: Python refuses to convert thousands of digits.
    parts = re.split(rf"(\d{{1,{_MOST_DIGITS}}})", name)
    order = [(int(part), "") if part.isdecimal() else (-1, part.casefold()) for part in parts]
    # Names that differ in case or in leading zeros alone have an order, too.
    return [*order, (-1, name)]


def verb_for(number: int, singular: str, plural: str) -> str:
    """Return the form of a verb that agrees with a count: ``1 case has``, ``2 cases have``."""
    return singular if number == 1 else plural


def normal_form(text: str) -> str:
    r"""Return the identity of a text: equal for texts that readers take for one text, written in two ways.

    Left out: Unicode form, width, case, runs of white space, blanks beside Chinese and Japanese characters, invisible
    characters, Arabic and Hebrew vowel signs, nuktas, and the variants of alef, yeh, kaf, quotation marks and dashes.
    Code and formulas keep their case. Lines keep their relative indentation, as ``\n`` and tabs where it changes.
    """
    text = _composed(text.replace("\r\n", "\n").replace("\r", "\n"))
    parts: list[str] = []
    end = 0
    for exact in _EXACT.finditer(text) if any(mark in text for mark in _EXACT_MARKS) else ():
        parts += [_prose_form(text[end : exact.start()]), exact[0].translate(_EXACT_FOLDS)]
        end = exact.end()
    parts.append(_prose_form(text[end:]))
    return unicodedata.normalize("NFC", _outline("".join(parts)))


def opening(text: str) -> str:
    """Return the first letters of a text in normal form: two texts that begin with others are not the same.

    Empty for a text that is too short to tell. Characters at the end of a slice may be halves of what the text has
    there, so they are left out.
    """
    letters = _letters(text[:_END])
    return letters[:_DECISIVE] if len(letters) >= 2 * _DECISIVE else ""


def is_same_text(first: str, second: str) -> bool:
    """Return whether two texts have one normal form; most differ in their first or last words, which takes less time.

    Characters at the inner end of a slice may be halves of what the text has there, so they do not decide.
    """
    for piece, outer in ((slice(_END), slice(_DECISIVE)), (slice(-_END, None), slice(-_DECISIVE, None))):
        letters = _letters(first[piece]), _letters(second[piece])
        if min(map(len, letters)) >= 2 * _DECISIVE and letters[0][outer] != letters[1][outer]:
            return False
    return first == second or _cached_form(first) == _cached_form(second)


_cached_form = lru_cache(_MOST_TEXTS)(normal_form)  # the responses of a case are in several pairs


def _composed(text: str) -> str:
    """Return the composed form of a text, without combining marks that are too many."""
    if text.isascii():
        return text
    # Too long a run covers one of these places.
    if any(map(unicodedata.combining, text[_MOST_MARKS :: _MOST_MARKS + 1])):
        text = _long_runs().sub(lambda run: run[0][:_MOST_MARKS], text)
    return unicodedata.normalize("NFC", text)


@lru_cache(_MOST_TEXTS)
def _letters(text: str) -> str:
    """Return a text as `normal_form` folds it, without white space and without a difference of case."""
    letters = "".join(_composed(text).translate(_PROSE_FOLDS).split()).replace("i\u0307", "i")
    return unicodedata.normalize("NFC", letters)


def conversation_form(turns: Iterable[Message]) -> str:
    """Return the identity of a prompt: the roles and normal forms of its turns; empty for a prompt without text."""
    forms = [(turn.role, normal_form(turn.content)) for turn in turns]
    return "\x1e".join(f"{role}\x1f{form}" for role, form in forms) if any(form for _, form in forms) else ""


def name_form(name: str) -> str:
    """Return the identity of a category's name: its normal form, with hyphens and underscores as spaces."""
    return " ".join(re.split(r"[\s_-]+", normal_form(name))).strip()


def common_spellings(names: Iterable[str] | Mapping[str, int], identity: Callable[[str], str]) -> dict[str, str]:
    """Return for each name the most frequent spelling of what it names; of equally frequent ones a tidy one.

    ``names`` may be counted already. ``identity``: `name_form` of categories, `language_key` of languages.
    """
    counts = Counter(names)
    spelling: dict[str, str] = {}
    for name in sorted(
        counts, key=lambda each: (-counts[each], each != unicodedata.normalize("NFC", each).strip(), each)
    ):
        spelling.setdefault(identity(name), name)
    return {name: spelling[identity(name)] for name in counts}


class _Folds(dict[int, str]):
    """The normal form of each character, cached; ``folds_case`` is false within code and formulas."""

    def __init__(self, *, folds_case: bool) -> None:
        self._folds_case = folds_case

    def __missing__(self, code: int) -> str:
        character = chr(code)
        form = character.translate(_VARIANTS)
        category = unicodedata.category(character)
        is_mark = category == "Mn" and _OPTIONAL_MARK.match(unicodedata.name(character, ""))
        is_control = category == "Cc" and not character.isspace()
        if is_mark or is_control or _INVISIBLE.match(character):
            form = ""
        elif _WRITTEN_FORM.match(unicodedata.decomposition(character)):
            form = unicodedata.normalize("NFKC", character)
        elif self._folds_case and form == character:
            # The two letters i of Turkish are one in the capitals of other languages.
            form = "i" if character in "\u0130\u0131" else character.casefold()
        if form != character and form:
            form = form.translate(self)
        self[code] = form
        return form


_PROSE_FOLDS, _EXACT_FOLDS = _Folds(folds_case=True), _Folds(folds_case=False)


def _prose_form(text: str) -> str:
    if text.isascii():
        return text.translate(_PROSE_FOLDS)
    # Once before the folds, which make full-width marks plain ones, and once after them, which removes what is unseen.
    folded = _BLANK_BESIDE_CJK.sub("", text).translate(_PROSE_FOLDS)
    return _BLANK_BESIDE_CJK.sub("", folded).replace("i\u0307", "i")


def _outline(text: str) -> str:
    """Return the text on one line, except where the indentation of a line differs from that of the line before."""
    parts: list[str] = []
    widths, level = [0], 0
    for line in text.split("\n"):
        body = " ".join(line.split())
        if not body:
            continue
        width = len(line.expandtabs(_TAB)) - len(line.expandtabs(_TAB).lstrip())
        if not parts:
            widths = [width]
        while widths and width < widths[-1]:
            widths.pop()
        if not widths or width > widths[-1]:
            widths.append(width)
        if parts:
            is_joined = _IS_CJK.match(body) or _IS_CJK.match(parts[-1][-1])
            parts.append("\n" + "\t" * (len(widths) - 1) if len(widths) - 1 != level else "" if is_joined else " ")
        parts.append(body)
        level = len(widths) - 1
    return "".join(parts)


@cache
def _long_runs() -> re.Pattern[str]:
    marks = "".join(chr(code) for code in range(0x20000) if unicodedata.combining(chr(code)))
    return re.compile(f"[{marks}]{{{_MOST_MARKS + 1},}}")


def response_text(response: Response) -> str:
    """Return the text of a response; several turns are joined by line breaks."""
    return "\n".join(_turn_texts(response))


def is_blank(text: str) -> bool:
    """Return whether a text has no visible character: white space, control and format characters, and fillers."""
    return not text.strip() or all(
        character in _FILLERS or unicodedata.category(character) in ("Zs", "Zl", "Zp", "Cc", "Cf") for character in text
    )


def prompt_text(case: Case) -> str:
    """Return the whole conversation that the responses answer."""
    return "\n".join(message.content for message in case.prompt.messages)


def num_characters(response: Response) -> int:
    """Count the Unicode code points of all turns of a response."""
    # A single text, the usual case, is counted at once: baselines call this for every response.
    return len(response.text) if response.text is not None else sum(map(len, _turn_texts(response)))


def num_markdown_marks(response: Response) -> int:
    """Count the Markdown marks of all turns of a response, outside code; a block of code is one mark.

    Marks are headings, list items, quotations, table rows, rules, bold, inline code, links and images.
    """
    return sum(map(_num_marks, _turn_texts(response)))


def _num_marks(text: str) -> int:
    rest, num_fences = _FENCE.subn("", text)
    return num_fences + sum(1 for mark in (_LINE_MARK, _INLINE_MARK) for _ in mark.finditer(rest))


def _turn_texts(response: Response) -> Iterable[str]:
    if response.text is not None:
        return (response.text,)
    return (message.content for message in response.messages or ())


def answer_language(prompt: Prompt) -> str | None:
    """Return the language of the responses: ``meta.answer_language`` (a translation task), else that of the prompt."""
    language = (prompt.meta or {}).get("answer_language")
    return language if isinstance(language, str) and language else prompt.language


def hidden_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where a text has characters that hide or reorder others: start and end of each run, in code points."""
    return (match.span() for match in HIDDEN_CHARACTERS.finditer(text) if match["hidden"])


def name_hidden(text: str) -> str:
    """Return a text with the codes of characters that hide or reorder others in their place: ``⟨U+202E⟩``."""
    return HIDDEN_CHARACTERS.sub(lambda match: f"⟨{codes_of(match[0])}⟩" if match["hidden"] else match[0], text)


def codes_of(characters: str) -> str:
    """Return the codes of hidden characters, as ``U+202E U+200B``; of many the first, and their number."""
    codes = " ".join(f"U+{ord(character):04X}" for character in characters[:_MOST_CODES])
    return codes + (f" … ({len(characters)})" if len(characters) > _MOST_CODES else "")
