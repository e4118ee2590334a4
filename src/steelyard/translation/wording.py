"""Checks of the words of a translation: its language and script, words left as they were, loops, and left-over marks.

Scripts decide on the language where they can. Within a script the language that a model identified decides, where the
caller has it (`target_languages`); without it a text in another language of the same script is not found.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np

from steelyard.core.languages import language_named, script_code
from steelyard.core.scripts import SCRIPTS, scripts_of
from steelyard.core.text import is_same_text
from steelyard.core.types import Case
from steelyard.prompts.languages import chinese_script, identify
from steelyard.responses.faults import repeated_lines, repeated_share, template_leftovers
from steelyard.responses.subject import LETTER_WEIGHTS
from steelyard.translation.blocks import Closings
from steelyard.translation.damage_kinds import DamageFinding, finding
from steelyard.translation.inline_pieces import inline_pieces
from steelyard.translation.language_tables import answer_phrases, translator_phrases
from steelyard.translation.passages import Passage, PassagePair, passages

_WRITING_SYSTEMS = {
    "Latn": "Latin", "Cyrl": "Cyrillic", "Arab": "Arabic", "Hans": "Han", "Hant": "Han", "Jpan": "Japanese",
    "Kore": "Hangul", "Deva": "Devanagari", "Grek": "Greek", "Hebr": "Hebrew", "Thai": "Thai", "Beng": "Bengali",
    "Taml": "Tamil", "Telu": "Telugu", "Gujr": "Gujarati", "Guru": "Gurmukhi", "Knda": "Kannada", "Mlym": "Malayalam",
    "Sinh": "Sinhala", "Geor": "Georgian", "Armn": "Armenian", "Ethi": "Ethiopic", "Khmr": "Khmer", "Laoo": "Lao",
    "Mymr": "Myanmar", "Orya": "Oriya", "Tibt": "Tibetan",
}  # fmt: skip
_ALIKE = (
    {"ms", "id", "jv", "su", "min", "ban", "mad"}, {"no", "nn", "nb", "da"}, {"sr", "hr", "bs", "sh", "sl"},
    {"cs", "sk"}, {"gl", "pt"}, {"ca", "oc"}, {"af", "nl"}, {"bg", "mk"}, {"tl", "ceb", "ilo", "war", "pam"},
    {"zh", "yue", "wuu"}, {"qu", "ay"}, {"hi", "mr", "ne", "bh", "mai", "sa"}, {"fa", "prs", "tg"}, {"az", "tr", "crh"},
    {"ht", "fr"}, {"ht", "eo"}, {"it", "vec", "lmo", "pms", "nap", "scn", "co"},
)  # fmt: skip
"""Languages that identification confuses: a text of one is never a finding in another, nor words that both have."""
_SURE, _LIKELY = 0.9, 0.5
_LEAST_SHARE = 0.3
_FEWEST_LETTERS, _FEWEST_SURE, _FEWEST_LIKELY = 12, 16, 22
_FEWEST_KANA, _FEWEST_HAN = 40, 4
_BEGINNING = 2000
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_HAN = re.compile(r"[\u3400-\u9fff]+")


class TargetLanguage(NamedTuple):
    """The identified language of a text with its probability, and for Chinese its script: ``Hans`` or ``Hant``."""

    language: str
    probability: float
    script: str | None


def target_languages(targets: Iterable[Case]) -> list[tuple[TargetLanguage | None, ...]]:
    """Return the language of each text of each case, the prompt first, with all texts identified in one batch.

    Raises ModuleNotFoundError without the extra ``multilingual``.
    """
    cases = [passages(case) for case in targets]
    prose = [each.prose for texts in cases for each in texts]
    languages = iter(identified_languages(prose))
    return [tuple(next(languages) for _ in texts) for texts in cases]


def identified_languages(texts: Sequence[str]) -> list[TargetLanguage | None]:
    """Return the language of each text; null where none was identified. Raises as `target_languages` does."""
    return [
        None if name is None else TargetLanguage(*name, chinese_script(text) if name.language == "zh" else None)
        for text, name in zip(texts, identify(texts), strict=True)
    ]


def check_empty(pair: PassagePair) -> Iterator[DamageFinding]:
    """Find a translation without letters and digits whose source has some."""
    if any(map(str.isalnum, pair.source.text)) and not any(map(str.isalnum, pair.target.text)):
        yield finding("empty", pair, pair.source.text, pair.target.text)


def check_language(pair: PassagePair, identified: TargetLanguage | None) -> Iterator[DamageFinding]:
    """Find a text in another language or script than that of its case."""
    source, target = pair
    expected = script_code(target.language) if target.language else None
    system = _WRITING_SYSTEMS.get(expected or "")
    if system is None or target.size < _FEWEST_LETTERS or not _is_prose(target):
        return
    share = _share(target, system)
    is_copied = not _are_alike(source.code, target.code) and is_same_text(source.prose, target.prose)
    is_same = identified is not None and identified.language == target.code
    is_foreign = share < _LEAST_SHARE and not (is_same and share > _LEAST_SHARE / 4)
    if is_copied or is_foreign or _has_no_kana(target):
        kind = "wrong_script" if is_same and not is_copied else "wrong_language"
        yield finding(kind, pair, target.language, target.prose)
    elif identified is not None and is_same:
        if identified.script is not None and identified.script != expected and target.scripts["Han"] >= _FEWEST_HAN:
            yield finding("wrong_script", pair, target.language, target.prose)
    elif identified is not None and _is_other(identified, pair):
        yield finding("wrong_language", pair, target.language, f"{identified.language}: {target.prose}")


def _is_prose(passage: Passage) -> bool:
    """Return whether a text has words that are not names: two in small letters, or in letters without case."""
    words = _WORD.findall(passage.prose[:_BEGINNING])
    small = (word for word in words if word[0].islower() or (not word.isupper() and not word.istitle()))
    return len(list(islice(small, 2))) >= min(2, len(words))


def _are_alike(first: str, second: str) -> bool:
    """Return whether two languages are one, or share so much that whole sentences are the same in both."""
    return first == second or any({first, second} <= group for group in _ALIKE)


def _has_no_kana(target: Passage) -> bool:
    is_han = target.code == "ja" and target.scripts["Han"] >= _FEWEST_KANA
    return is_han and not target.scripts["Hiragana"] + target.scripts["Katakana"]


def _is_other(identified: TargetLanguage, pair: PassagePair) -> bool:
    """Return whether the identified language is surely another; longer texts need a lower probability."""
    if _are_alike(identified.language, pair.target.code):
        return False
    is_sure = identified.probability >= _SURE or identified.language == pair.source.code
    fewest = _FEWEST_SURE if is_sure else _FEWEST_LIKELY
    if identified.probability < _LIKELY or pair.target.size < fewest:
        return False
    # Identification can name a language that is not written in the script of the text.
    system = _WRITING_SYSTEMS.get(script_code(identified.language) or "")
    return system is None or _share(pair.target, system) >= _LEAST_SHARE


def _share(passage: Passage, system: str) -> float:
    """Return the share of a text's letters that are of a writing system."""
    return (
        sum(passage.scripts[name] * LETTER_WEIGHTS[SCRIPTS.index(name)] for name in scripts_of(system)) / passage.size
    )


# --- Words of the source ---------------------------------------------------------------------------------------------

_RUN = 3
_FEWEST_WORDS, _FEWEST_SMALL, _FEWEST_RUN_LETTERS = 4, 3, 12
_SIGNS, _FEWEST_SIGNS = 2, 8
_JOINTS = re.compile("['’-]")
_TOKEN = re.compile(r"\w+(?:['’-]\w+)*")
_CALLS = ("(", "[", "_", "=")
_QUOTED = re.compile(
    r"(?<!\w)'[^'\n]{1,200}'(?!\w)|\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|«[^»\n]{1,200}»|「[^」\n]{1,200}」|„[^“”\n]{1,200}[“”]"
)


def check_untranslated(pair: PassagePair) -> Iterator[DamageFinding]:
    """Find the longest run of source words that the translation kept, outside code, names and quotations.

    A run has four words, three of them in small letters; three words suffice where the translation has another script.
    Numbers, identifiers and quotations within it do not count as words, and do not end it. Of a source in Chinese the
    kept words have eight signs. A text that is the source as a whole is a finding of its language.
    """
    source, target = pair
    if not target.code or _are_alike(source.code, target.code):
        return
    if is_same_text(source.prose, target.prose):
        return
    run = _kept_signs(pair) if source.code in ("zh", "ja") else _kept_words(pair)
    if run:
        yield finding("untranslated", pair, run, run)


def _kept_words(pair: PassagePair) -> str:
    source, target = pair
    is_latin = target.scripts["Latin"] > sum(target.scripts.values()) / 2 and script_code(target.language) == "Latn"
    fewest = _FEWEST_WORDS if is_latin else _RUN
    # Most translations have no such run, and need no look for paths and names.
    if not _has_shared_words(source.once(_vocabulary), target):
        return ""
    text = target.once(_words_alone)
    matches = list(_TOKEN.finditer(text))
    known = set(_in_threes(_TOKEN.findall(source.once(_words_alone).casefold())))
    threes = _in_threes([match[0].casefold() for match in matches])
    best = ""
    for is_kept, places in groupby(range(len(threes)), lambda place: threes[place] in known):
        if not is_kept:
            continue
        run_of_places = list(places)
        # Names of functions and variables do not count as words.
        run = [
            match[0]
            for match in matches[run_of_places[0] : run_of_places[-1] + _RUN]
            if _JOINTS.sub("", match[0]).isalpha() and text[match.end() : match.end() + 1] not in _CALLS
        ]
        small = len({word for word in run if word[0].islower() and len(word) > 1})
        words_of_run = " ".join(run)
        if (
            len(run) >= fewest
            and small >= min(fewest, _FEWEST_SMALL)
            and len(words_of_run) >= max(_FEWEST_RUN_LETTERS, len(best) + 1)
        ):
            best = words_of_run
    return best


def _in_threes(words: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return the words of each place with the two after it."""
    return list(zip(words, words[1:], words[2:], strict=False))


def _has_shared_words(vocabulary: frozenset[str], target: Passage) -> bool:
    """Return whether the translation has words of the source in a row, three different ones beside numbers."""
    runs = groupby(_folded_words(target), vocabulary.__contains__)
    return any(
        is_shared and len({word for word in run if len(word) > 1 and not word.isdecimal()}) >= _RUN
        for is_shared, run in runs
    )


def _vocabulary(source: Passage) -> frozenset[str]:
    """Return the words of a source, in small letters."""
    return frozenset(_folded_words(source))


def _folded_words(passage: Passage) -> list[str]:
    return _TOKEN.findall(_QUOTED.sub(" 0 ", passage.prose).casefold())


def _words_alone(passage: Passage) -> str:
    """Return the prose with a number in place of quotations and of paths, names and all else that stays as it is."""
    # Code was one grave accent, of which two would enclose what is between them.
    text = _QUOTED.sub(" 0 ", passage.prose.replace("`", " "))
    parts, position = [], 0
    for start, end, _ in inline_pieces(text, 0, len(text), closings=Closings(text), labels=frozenset()):
        parts += text[position:start], " 0 "
        position = end
    return "".join((*parts, text[position:]))


def _kept_signs(pair: PassagePair) -> str:
    """Return the Han characters that the translation kept, where they are more than a name."""
    if pair.target.code in ("zh", "ja", "yue"):
        return ""
    text = pair.source.prose
    known = {text[place : place + _SIGNS] for place in range(len(text) - _SIGNS + 1)}
    runs = [
        match[0]
        for match in _HAN.finditer(_QUOTED.sub(" ", pair.target.prose))
        if any(match[0][place : place + _SIGNS] in known for place in range(len(match[0]) - _SIGNS + 1))
    ]
    return " ".join(runs) if sum(map(len, runs)) >= _FEWEST_SIGNS else ""


# --- Loops and left-overs --------------------------------------------------------------------------------------------

_MORE_REPEATED = 0.25
_TOPIC = 60
LONGEST_REFUSAL = 400.0
"""Letters of a text up to which it can be a refusal and nothing else."""
_WINDOW, _DENSE_WINDOW = 30, 8


def check_repeated(pair: PassagePair) -> Iterator[DamageFinding]:
    """Find a loop: much more of the translation occurred before in it than of the source in the source."""
    source, target = pair
    loop = _loop(target)
    if loop and not _loop(source):
        yield finding("repeated", pair, "", loop)
        return
    size = _DENSE_WINDOW if target.subject.is_dense else _WINDOW
    for share in (partial(repeated_share, size=size), repeated_lines):
        after = share(target.subject)
        if after > _MORE_REPEATED and after - share(source.subject) > _MORE_REPEATED:
            yield finding("repeated", pair, "", target.text[-200:])
            return


def _loop(passage: Passage) -> str:
    """Return a sentence that stands three times in a row, or words that stand four times in a row."""
    sentences: Sequence[str] = passage.sentences
    for first, second, third in zip(sentences, sentences[1:], sentences[2:], strict=False):
        if first == second == third:
            return first
    words = passage.prose.split()
    # Words of one hash are compared below.
    coded = np.fromiter(map(hash, words), dtype=np.int64, count=len(words))
    for width in range(1, 9):
        is_same = coded[width:] == coded[:-width]
        # Common words stand at most distances now and then.
        if np.count_nonzero(is_same) < 3 * width or b"\1" * 3 * width not in is_same.tobytes():
            continue
        same = 0
        for place in range(width, len(words)):
            same = same + 1 if words[place] == words[place - width] else 0
            if same >= 3 * width:
                unit = " ".join(words[place - width + 1 : place + 1])
                if any(map(str.isalpha, unit)):
                    return unit
    return ""


_FRAMES = (
    ('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’"), ("«", "»"), ("„", "“"), ("„", "”"), ("「", "」"), ("『", "』"),
    ("**", "**"), ("__", "__"), ("*", "*"), ("_", "_"), ("`", "`"), ("~", "~"), ("(", ")"), ("（", "）"), ("[", "]"),
    ("【", "】"), ("{", "}"),
)  # fmt: skip
_FRAME_SIGNS = frozenset(sign[0] for signs in _FRAMES for sign in signs) | {"<", ">"}
_ELEMENT = re.compile(r"<(\w+)[^<>]*>.*</\1>", re.DOTALL)
_FEWEST_FRAMED = 20
_LABEL = re.compile(r"[\s*_#>\"'“«(\[]{0,8}([^\W\d_]{2,20}(?: [^\W\d_]{2,20}){0,2})[*_)\] ]{0,4}[:：]")


def check_frame(pair: PassagePair) -> Iterator[DamageFinding]:
    """Find a frame around the translation which the source has not: quotation marks, emphasis, a fence, an element.

    The name of a language in front is one, too, such as "Spanish:". Short texts may be titles, which languages mark in
    other ways.
    """
    source, target = (each.text.strip() for each in pair)
    labels = [match and language_named(match[1]) and match[0] for match in map(_LABEL.match, (source, target))]
    if labels[1] and not labels[0]:
        yield finding("leftover", pair, source, labels[1])
    elif pair.source.size >= _FEWEST_FRAMED and not {source[:1], source[-1:]} & _FRAME_SIGNS and _is_framed(target):
        yield finding("leftover", pair, source, target)


def _is_framed(text: str) -> bool:
    """Return whether the first and the last sign of a text belong together."""
    frame = next((each for each in _FRAMES if text.startswith(each[0]) and text.endswith(each[1])), None)
    if frame is None:
        return _ELEMENT.fullmatch(text) is not None
    opening, closing = frame
    inner = text[len(opening) : -len(closing)]
    if opening == closing:
        # The first of two quotations ends behind a letter.
        place = inner.find(opening)
        return place <= 0 or inner[place - 1].isspace()
    depth = 1
    for sign in inner:
        depth += (sign == opening) - (sign == closing)
        if not depth:
            return False
    return True


def check_leftovers(pair: PassagePair) -> Iterator[DamageFinding]:
    """Find marks of templates, and a translator's opening or refusal, which the source has not."""
    source, target = pair
    if (number := template_leftovers(target.subject)) and number > template_leftovers(source.subject):
        marks = (match[0] for match in _MARK.finditer(target.text) if match[0] not in source.text)
        yield finding("leftover", pair, "", next(marks, target.text))
        return
    phrases = translator_phrases()
    for pattern in (phrases.openings, phrases.label):
        match = pattern.match(target.text)
        if match is not None and pattern.match(source.text) is None and not source.once(_speaks_of_translation):
            yield finding("leftover", pair, source.text, match[0])
            return
    # A source that declines is translated so; one that does not speak of a translation declines to do something else.
    if (
        target.size <= LONGEST_REFUSAL
        and target.once(declines)
        and not (source.once(declines) and (source.once(_speaks_of_translation) or not _speaks_of_translation(target)))
    ):
        yield finding("leftover", pair, source.text, target.text)


def _speaks_of_translation(passage: Passage) -> bool:
    """Return whether the beginning of a text speaks of a translation."""
    return translator_phrases().topic.search(passage.text[:_TOPIC]) is not None


def declines(passage: Passage) -> bool:
    """Return whether a text is an answer that declines; translators do so in the words of other models."""
    return (
        translator_phrases().refusals.match(passage.text) is not None or answer_phrases().refusals(passage.subject) > 0
    )


_MARK = re.compile(
    r"<\|[^|\n]{1,40}\|>|<｜[^｜\n]{1,40}｜>|</?\w{1,20}>|\[/?[A-Za-z]{2,8}\]|<</?SYS>>|\{\{[^{}\n]{1,40}\}\}"
)
