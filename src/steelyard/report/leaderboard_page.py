"""The leaderboard as one HTML file: sortable, in English and Chinese, and nothing of it comes from elsewhere."""

import base64
import hashlib
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from steelyard.report.leaderboard import numbers_of, rank_of, share_read, shown, shown_share

_FOLDER = files("steelyard.report") / "templates" / "leaderboard"


def as_page(summary: Mapping[str, Any]) -> str:
    """The page of a leaderboard's summary. Names are a person's own and are escaped."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["say"] = _say
    script = _read("page.js")
    groups: dict[str, list[str]] = {}
    for one in summary["columns"]:
        groups.setdefault(one["group"], []).append(one["name"])
    return environment.from_string(_read("page.html")).render(
        summary=summary,
        groups=groups,
        rows=[(row, rank_of(row), numbers_of(row)) for row in summary["rows"]],
        shown=shown,
        share_read=share_read,
        shown_share=shown_share,
        style=_marked(_read("page.css")),
        script=_marked(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _say(key: str) -> Any:
    """A word of the page in both languages, of which the page shows one; a name that is no such word as it is."""
    from markupsafe import Markup

    words = tomllib.loads(_read("strings.toml")).get(key)
    if words is None:
        return Markup("<bdi>{}</bdi>").format(key)
    spans = [Markup('<span class="t" lang="{}">{}</span>').format(language, said) for language, said in words.items()]
    return Markup("").join(spans)


def _marked(own: str) -> Any:
    from markupsafe import Markup

    return Markup(own)


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
