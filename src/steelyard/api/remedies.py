"""Errors in the words of Python: the options that an error names are keywords, and values in memory have no path."""

import re
from collections.abc import Mapping
from typing import Any

from steelyard.core.errors import UserError

_SET = re.compile(r"(?<![\w-])--set ('?)([\w.]+=[^\s']+)\1")
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]+)(?: ([A-Z][A-Z_]*|[0-9.]+)\b)?(?![\w-])")
_FLAGS = (
    "force",
    "allow-failed",
    "allow-overlap",
    "allow-even",
    "allow-unscored",
    "keep-ties",
    "any-language",
    "tokens",
)
_NAMES = {"from": "from_kind", "to": "to_kind", "no-self-test": "self_test"}
"""Keywords whose names are not those of the options."""


def in_python(error: UserError, places: Mapping[str, str]) -> UserError:
    """Return the error with options as keywords, and with names for the files of values in memory."""
    texts: list[Any] = [error.problem, error.where, error.allowed, error.do]
    for path, name in places.items():
        texts = [text and str(text).replace(path, name) for text in texts]
    problem, where, allowed, do = texts
    problem, allowed, do = (text and _with_keywords(text) for text in (problem, allowed, do))
    return type(error)(problem, where=where, allowed=allowed, do=do)


def _with_keywords(text: str) -> str:
    """Return a text with the options of the command line as keywords: ``--force`` as ``force=True``."""
    if "steelyard " in text:  # a whole command: it works as it is
        return text
    return _OPTION.sub(_keyword_of, _SET.sub(r"\2", text))


def _keyword_of(option: re.Match[str]) -> str:
    name = option[1]
    if name in _FLAGS:
        return f"{name.replace('-', '_')}=True"
    keyword = _NAMES.get(name, name.replace("-", "_"))
    return f"{keyword}={'False' if name.startswith('no-') else option[2] or '…'}"
