"""Languages by their English names, as data sets of conversations write them, and by their codes."""

import re

_NAMES = {
    "Arabic": "ar", "Bengali": "bn", "Bulgarian": "bg", "Catalan": "ca", "Chinese": "zh", "Croatian": "hr",
    "Czech": "cs", "Danish": "da", "Dutch": "nl", "English": "en", "Estonian": "et", "Finnish": "fi", "French": "fr",
    "German": "de", "Greek": "el", "Hebrew": "he", "Hindi": "hi", "Hungarian": "hu", "Indonesian": "id",
    "Italian": "it", "Japanese": "ja", "Korean": "ko", "Latvian": "lv", "Lithuanian": "lt", "Norwegian": "no",
    "Persian": "fa", "Polish": "pl", "Portuguese": "pt", "Romanian": "ro", "Russian": "ru", "Serbian": "sr",
    "Slovak": "sk", "Slovenian": "sl", "Spanish": "es", "Swahili": "sw", "Swedish": "sv", "Tamil": "ta", "Thai": "th",
    "Turkish": "tr", "Ukrainian": "uk", "Urdu": "ur", "Vietnamese": "vi",
}  # fmt: skip
_CODES = {name.lower(): code for name, code in _NAMES.items()}
_NAMES_OF_CODES = {code: name for name, code in _NAMES.items()}
_CODE = re.compile(r"[a-z]{2,3}([-_][A-Za-z0-9]+)*")


def code_of(name: str) -> str | None:
    """The code of a language's name in any case, or the code itself; null for anything else."""
    return _CODES.get(name.lower()) or (name if _CODE.fullmatch(name) else None)


def name_of(code: str) -> str:
    """The English name of a code, such as ``Chinese``; a code without one stays as it is."""
    return _NAMES_OF_CODES.get(code, code)
