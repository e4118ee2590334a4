"""English names of languages in rows, and their codes."""

import re

_LANGUAGES = {
    "Afrikaans": "af", "Arabic": "ar", "Bengali": "bn", "Bulgarian": "bg", "Catalan": "ca", "Chinese": "zh",
    "Croatian": "hr", "Czech": "cs", "Danish": "da", "Dutch": "nl", "English": "en", "Estonian": "et",
    "Finnish": "fi", "French": "fr",
    "German": "de", "Greek": "el", "Hebrew": "he", "Hindi": "hi", "Hungarian": "hu", "Indonesian": "id",
    "Italian": "it", "Japanese": "ja", "Korean": "ko", "Latvian": "lv", "Lithuanian": "lt", "Malay": "ms",
    "Norwegian": "no", "Persian": "fa", "Polish": "pl", "Portuguese": "pt", "Romanian": "ro", "Russian": "ru",
    "Serbian": "sr", "Slovak": "sk", "Slovenian": "sl", "Spanish": "es", "Swahili": "sw", "Swedish": "sv",
    "Tagalog": "tl", "Tamil": "ta", "Thai": "th", "Turkish": "tr", "Ukrainian": "uk", "Urdu": "ur",
    "Vietnamese": "vi",
}  # fmt: skip
_CODES = {name.lower(): code for name, code in _LANGUAGES.items()}
_NAMES_OF_CODES = {code: name for name, code in _LANGUAGES.items()}
LANGUAGE_CODE = re.compile(r"[a-z]{2,3}([-_][A-Za-z0-9]+)*")


def language_code(name: str | None) -> str | None:
    """Return the code of a language's English name in any case, or the code itself; null for anything else."""
    if name is None:
        return None
    return _CODES.get(name.lower()) or (name if LANGUAGE_CODE.fullmatch(name) else None)


def language_name(code: str | None) -> str | None:
    """Return the English name of a code, such as ``Chinese``; a code without one stays as it is."""
    return None if code is None else _NAMES_OF_CODES.get(code, code)
