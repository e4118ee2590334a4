"""Keys of servers: read from the environment, sent in one header, and written nowhere, whatever a server repeats."""

import base64
import html
import os
import re
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from steelyard.core.errors import ConfigError

HIDDEN = "[key]"
_FEWEST = 4
_SECRET_NAME = re.compile(r"(?i).*(key|token|secret|password|signature|auth|credential)s?|sig|pwd|pass")


class Key:
    """The key of a server, or none. It has no text form: neither `str` nor `repr` shows it."""

    def __init__(self, value: str | None = None) -> None:
        self._value = value
        self._spellings = None if value is None else _spellings(value)

    def headers(self) -> dict[str, str]:
        """Return the header that proves who asks; empty without a key."""
        return {} if self._value is None else {"Authorization": f"Bearer {self._value}"}

    def redact(self, value: Any) -> Any:
        """Return a text, or JSON with texts in it, in which the key is replaced, however it is encoded there."""
        if self._spellings is None:
            return value
        if isinstance(value, str):
            return self._spellings.sub(HIDDEN, value)
        if isinstance(value, dict):
            return {self.redact(name): self.redact(one) for name, one in value.items()}
        return [self.redact(one) for one in value] if isinstance(value, list) else value

    def __repr__(self) -> str:
        return f"Key({'' if self._value is None else HIDDEN})"


def read_key(variable: str | None, *, where: str) -> Key:
    """Return the key in an environment variable; no variable means no key.

    Raises ConfigError for a variable that is not set, and for what cannot be a key; its value is never shown.
    """
    if variable is None:
        return Key()
    value = os.environ.get(variable, "").strip()
    if not value:
        raise ConfigError(f"there is no environment variable {variable!r}", where=where, do="set it to the key")
    if len(value) < _FEWEST or not value.isascii() or not value.isprintable() or " " in value:
        found = f"the environment variable {variable!r} does not hold a key"
        raise ConfigError(found, where=where, allowed=f"{_FEWEST} or more ASCII characters without spaces")
    return Key(value)


def check_address(url: str, *, where: str) -> None:
    """Raise ConfigError for what is no http address, and for one that holds a password or a key.

    Addresses are written into records; the address itself is not repeated here.
    """
    parts = _split(url)
    if parts is None:
        raise ConfigError("this is no address of a server", where=where, allowed="http://HOST:PORT/PATH, or https")
    part = where.partition(".")[0]
    do = f"put the key into an environment variable, and name that: --set {part}.secret=VARIABLE"
    if "@" in parts.netloc:
        raise ConfigError("the address holds a user name or password, and addresses are recorded", where=where, do=do)
    if any(_SECRET_NAME.fullmatch(name) for name, _ in parse_qsl(parts.query, keep_blank_values=True)):
        raise ConfigError("the address holds a key, and addresses are recorded", where=where, do=do)


def _split(url: str) -> SplitResult | None:
    """Return the parts of an http address, null for anything else."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_address and not any(sign.isspace() or not sign.isprintable() for sign in url) else None


def _spellings(value: str) -> re.Pattern[str]:
    """Match the key in the encodings in which servers repeat what they were sent, in either case of letters."""
    whole = "".join(f"(?:{'|'.join(_encodings(sign))})" for sign in value)
    encoded = [base64.b64encode(text.encode()).decode().rstrip("=") for text in (value, f"Bearer {value}", f":{value}")]
    return re.compile("|".join([whole, *map(re.escape, encoded)]), re.IGNORECASE)


def _encodings(sign: str) -> list[str]:
    """Spell one ASCII sign plainly, escaped, and as addresses, JSON and HTML write it."""
    code = ord(sign)
    found = [sign, f"\\{sign}", f"%{code:02x}", f"\\u{code:04x}", f"&#{code};", f"&#x{code:x};", html.escape(sign)]
    return [re.escape(one) for one in dict.fromkeys(found)]
