"""Settings that a person wrote into a TOML file."""

from pathlib import Path
from typing import Any

from steelyard.core.config import parse_toml
from steelyard.core.errors import Place
from steelyard.io.lines import check_text, check_utf8


def read_toml(path: Path) -> dict[str, Any]:
    """The settings in a file. Raises FileError for a file that is no text, ConfigError with the line that is broken."""
    check_text(path)
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    return parse_toml(check_utf8(content, Place(str(path))), where=str(path))
