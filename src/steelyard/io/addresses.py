"""Addresses of servers and API keys: a key is sent in one header, and written nowhere.

A server may repeat the key that it was sent. Its plain and usual spellings are redacted in all that the server answers,
before others see it; a server that means to can spell it in ways that are not.
"""

import base64
import html
import os
import re
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from steelyard.core.errors import ConfigError
from steelyard.core.remedies import Advice, Placeholder, Remedy

HIDDEN = "[key]"
_MIN_KEY_LENGTH = 4
_SECRET_NAME = re.compile(r"(?i).*(key|token|secret|password|signature|auth|credential)s?|sig|pwd|pass")


class Key:
    """The API key of a server, or none. Neither `str` nor `repr` shows it."""

    def __init__(self, value: str | None = None, *, header: str = "Authorization") -> None:
        self._value, self._header = value, header
        self._spellings = None if value is None else _spellings(value)

    def headers(self) -> dict[str, str]:
        """Return the header with the key; empty without a key. Only that of authorisation names its scheme."""
        scheme = "Bearer " if self._header == "Authorization" else ""
        return {} if self._value is None else {self._header: f"{scheme}{self._value}"}

    def redact(self, value: Any) -> Any:
        """Return a text, or JSON with texts in it, with the key replaced in each of its encodings."""
        if self._spellings is None:
            return value
        if isinstance(value, str):
            return self._spellings.sub(HIDDEN, value)
        if isinstance(value, dict):
            return {self.redact(name): self.redact(inner) for name, inner in value.items()}
        return [self.redact(inner) for inner in value] if isinstance(value, list) else value

    def __repr__(self) -> str:
        return f"Key({'' if self._value is None else HIDDEN})"


def read_key(variable: str | None, *, where: str, header: str = "Authorization") -> Key:
    """Return the key in an environment variable, sent in this header; null without a variable.

    Raises ConfigError for a variable that is not set or does not hold a key; its value is never shown.
    """
    if variable is None:
        return Key()
    value = os.environ.get(variable, "").strip()
    if not value:
        # In place of the name people give the key itself, which no log may show.
        name = repr(variable) if variable.isupper() and variable.isidentifier() else "of this name"
        do = "set it to the key, and give its name, not the key"
        raise ConfigError(f"there is no environment variable {name}", where=where, do=do)
    if len(value) < _MIN_KEY_LENGTH or not value.isascii() or not value.isprintable() or " " in value:
        problem = f"the environment variable {variable!r} does not hold a key"
        raise ConfigError(problem, where=where, allowed=f"{_MIN_KEY_LENGTH} or more ASCII characters without spaces")
    return Key(value, header=header)


def check_address(url: str, *, where: str) -> None:
    """Raise ConfigError unless the URL is an http address without a password or a key.

    Addresses are written into records. The error does not repeat the address.
    """
    parts = _split(url)
    if parts is None:
        raise ConfigError("this is no address of a server", where=where, allowed="http://HOST:PORT/PATH, or https")
    part = where.partition(".")[0]
    secret = Remedy(f"{part}.secret", Placeholder("VARIABLE"))
    do = Advice("put the key into an environment variable, and name that: ", secret)
    if "@" in parts.netloc:
        raise ConfigError("the address holds a user name or password, and addresses are recorded", where=where, do=do)
    if any(_SECRET_NAME.fullmatch(name) for name, _ in parse_qsl(parts.query, keep_blank_values=True)):
        raise ConfigError("the address holds a key, and addresses are recorded", where=where, do=do)


def _split(url: str) -> SplitResult | None:
    """Return the parts of an http address, null for anything else."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and "#" not in url
    except ValueError:
        return None
    return parts if is_address and not any(sign.isspace() or not sign.isprintable() for sign in url) else None


def _spellings(value: str) -> re.Pattern[str]:
    """Match the key in the encodings in which servers repeat their input, in upper or lower case."""
    whole = "".join(f"(?:{'|'.join(_encodings(sign))})" for sign in value)
    encoded = [base64.b64encode(text.encode()).decode().rstrip("=") for text in (value, f"Bearer {value}", f":{value}")]
    return re.compile("|".join([whole, *map(re.escape, encoded)]), re.IGNORECASE)


def _encodings(sign: str) -> list[str]:
    """Return the spellings of one ASCII character: plain, escaped, and as in URLs, JSON and HTML."""
    code = ord(sign)
    spellings = [sign, f"\\{sign}", f"%{code:02x}", f"\\u{code:04x}", f"&#{code};", f"&#x{code:x};", html.escape(sign)]
    return [re.escape(spelling) for spelling in dict.fromkeys(spellings)]
