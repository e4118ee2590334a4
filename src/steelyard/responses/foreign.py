"""Share of an answer in another language than its prompt asks for: by script, and within a script by language.

Scripts decide where they can. Between languages of one script a function that identifies languages decides, passage by
passage. A prompt that names a language, or asks for a translation, may be answered in any.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from steelyard.core.languages import language_key
from steelyard.core.scripts import scripts_of
from steelyard.responses.subject import Subject

Identify = Callable[[Sequence[str]], Sequence[str | None]]
"""Returns the language of each text (ISO 639), null where it is not sure."""

_SHARED_SCRIPTS = {"Latin", "Cyrillic", "Arabic", "Devanagari"}
"""Scripts in which several languages are written, so that the script alone does not decide."""
_FEWEST_LETTERS = 12.0
_PASSAGE, _MOST_PASSAGES = 90, 6
_SHORTEST_PASSAGE = 25
_FEWEST_KANA_TEXT = 60.0
_ASKS_FOR_A_LANGUAGE = re.compile(
    r"translat|翻译|翻譯|译成|译为|übersetz|tradu[ckzi]|перевед|перевод|переклад|перекла|번역|翻訳|訳して|ترجم|अनुवाद"
    r"|tłumacz|přelož|překl|vertaal|vertal|\bçevir|tercüme|terjemah|\bdịch\b|μετάφρασ|μεταφράσ|תרגם|תרגום|แปล"
    r"|(?:英|日|法|德|俄|韩|韓|拉丁|葡萄牙|西班牙|意大利|阿拉伯|粤|藏|蒙|外)(?:语|語|文(?!明|化|学|章|艺))|单词|拼音|双语"
    r"|\b(?:english|german|french|spanish|italian|portuguese|russian|ukrainian|polish|czech|dutch|romanian|turkish"
    r"|greek|hebrew|arabic|persian|farsi|hindi|japanese|korean|chinese|mandarin|vietnamese|indonesian|latin|swahili"
    r"|thai)\b",
    re.IGNORECASE,
)
# Codes that name one language, for what identification says and what data say.
_EQUAL = {
    "iw": "he", "in": "id", "ms": "id", "fil": "tl", "tgl": "tl", "nb": "no", "nn": "no",
    "hr": "sr", "bs": "sr", "sh": "sr", "jp": "ja",
}  # fmt: skip


class Writing(NamedTuple):
    """The short code of a language and the name of its writing system."""

    code: str
    system: str


class ForeignText:
    """Measures text in other languages. ``writings`` has the known codes; a language that is not there is not measured.

    ``identify`` is null where languages of one script are not told apart.
    """

    def __init__(self, writings: Mapping[str, Writing], identify: Identify | None) -> None:
        self._writings = writings
        self._identify = identify

    def share(self, subject: Subject) -> float | None:
        """Return the share of the prose, weighed as Latin letters, that is in another language; null if not measured.

        Prompts without a known language and those that name a language are not measured, nor answers of few letters.
        """
        writing = self._writings.get(language_key(subject.language or ""))
        if writing is None or _ASKS_FOR_A_LANGUAGE.search(subject.prompt):
            return None
        scripts = scripts_of(writing.system)
        by_script, size = subject.foreign_share(scripts)
        if size < _FEWEST_LETTERS:
            return None
        if (
            writing.system == "Japanese"
            and size >= _FEWEST_KANA_TEXT
            and not re.search("[\u3041-\u30ff]", subject.prose)
        ):
            return 1.0  # Japanese of this length has kana: this is Chinese
        if self._identify is None or writing.system not in _SHARED_SCRIPTS or by_script > 0.5:
            return by_script
        return max(by_script, self._by_language(subject.prose, _short(writing.code)))

    def _by_language(self, prose: str, expected: str) -> float:
        assert self._identify is not None
        passages = [text for text in _passages(prose) if sum(map(str.isalpha, text)) >= _SHORTEST_PASSAGE]
        if not passages:
            return 0.0
        languages = self._identify(passages)
        sizes = [len(text) for text in passages]
        foreign = sum(
            size for size, name in zip(sizes, languages, strict=True) if name is not None and _short(name) != expected
        )
        return foreign / sum(sizes)


def _short(code: str) -> str:
    code = re.split("[-_]", code)[0].lower()
    return _EQUAL.get(code, code)


def _passages(prose: str) -> list[str]:
    """Return passages of about 90 characters, whole sentences or lines, at most six spread over the text."""
    pieces = re.split(r"(?<=[.!?؟۔।])\s+|\n+", prose)
    passages: list[str] = []
    for piece in filter(None, map(str.strip, pieces)):
        if passages and len(passages[-1]) < _PASSAGE:
            passages[-1] += f" {piece}"
        else:
            passages.append(piece)
    if len(passages) > _MOST_PASSAGES:
        step = len(passages) / _MOST_PASSAGES
        passages = [passages[int(place * step)] for place in range(_MOST_PASSAGES)]
    return [passage[: 4 * _PASSAGE] for passage in passages]
