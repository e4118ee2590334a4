"""Figures outside the report's page: the same Vega-Lite specifications, with words, colours and legend of their own."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.core.errors import EvidenceError, MissingPartError, OutputError, choices
from steelyard.core.types import JsonObject
from steelyard.evaluation.tables import Figure
from steelyard.report.page import Strings, page_strings, read_template
from steelyard.report.sources import read_sources
from steelyard.views.page import page_of, read_data

_COLOUR = re.compile(r"var\(--([\w-]+)\)")
_ROOT = re.compile(r":root \{(.*?)\n\}", re.DOTALL)
_PROPERTY = re.compile(r"--([\w-]+):\s*([^;]+);")
_WIDTH = 560
_MIME = "application/vnd.vegalite.v5+json"
_SUFFIXES = (".svg", ".png", ".json")


class Chart(NamedTuple):
    """A figure of the report as a value: notebooks show it; `save` writes it as .svg, .png or .json (Vega-Lite)."""

    title: str
    spec: JsonObject

    def svg(self) -> str:
        """Return the figure as SVG. Raises MissingPartError without the extra ``report``."""
        return _converter().vegalite_to_svg(self.spec)

    def png(self, *, scale: float = 2.0) -> bytes:
        """Return the figure as PNG. Raises MissingPartError without the extra ``report``."""
        return _converter().vegalite_to_png(self.spec, scale=scale)

    def save(self, path: str | Path) -> None:
        """Write the figure as the suffix says. Raises OutputError for any other suffix."""
        path = Path(path)
        if path.suffix.lower() not in _SUFFIXES:
            raise OutputError("cannot tell how to draw this", where=str(path), allowed=", ".join(_SUFFIXES))
        contents = {
            ".svg": lambda: self.svg().encode(),
            ".png": self.png,
            ".json": lambda: msgspec.json.format(msgspec.json.encode(self.spec), indent=2),
        }
        path.write_bytes(contents[path.suffix.lower()]())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> JsonObject:
        try:
            drawn = {"image/svg+xml": self.svg()}
        except MissingPartError:
            drawn = {}
        return {_MIME: self.spec, **drawn, "text/plain": f"Chart({self.title!r})"}


def charts_of(folder: Path, language: str = "en") -> tuple[Chart, ...]:
    """Return the figures that the report shows of a run, in its order."""
    data = read_data(read_sources([folder]))
    page = page_of(data, title=None, language=language, budget=0, version="")
    strings = page_strings()
    return tuple(
        _chart(f"{strings.translate(panel.title, language)}", panel.figure, strings, language)
        for section in page.sections
        for panel in section.panels
        if panel.figure is not None
    )


def chart_of(folder: Path, title: str | None, language: str) -> Chart:
    """Return the figure of a title, or the first one. Raises EvidenceError if the run has none of that title."""
    charts = charts_of(folder, language)
    if not charts:
        raise EvidenceError(
            "the report has no figure of this run", where=str(folder), do="read its tables: .table, .to_markdown()"
        )
    if title is None:
        return charts[0]
    by_title = {chart.title: chart for chart in reversed(charts)}
    if title not in by_title:
        raise EvidenceError(f"no figure has the title {title!r}", allowed=choices(title, by_title))
    return by_title[title]


def _chart(title: str, figure: Figure, strings: Strings, language: str) -> Chart:
    text = msgspec.json.encode(figure.spec).decode()
    colours = _colours()
    text = _COLOUR.sub(lambda match: colours[match[1]], strings.translate(text, language))
    spec = msgspec.json.decode(text)
    spec |= {"title": title} if title else {}
    spec["width"] = _WIDTH
    spec["autosize"] = {"type": "pad"}
    return Chart(title, _with_legend(spec) if figure.legend else spec)


def _with_legend(value: Any) -> Any:
    """Return the specification with legends, which the page draws itself."""
    if isinstance(value, Mapping):
        return {
            key: {"title": None, "orient": "bottom"} if key == "legend" and inner is None else _with_legend(inner)
            for key, inner in value.items()
        }
    return [_with_legend(inner) for inner in value] if isinstance(value, list) else value


def _colours() -> dict[str, str]:
    """Return the colours of the page's light theme by name."""
    root = _ROOT.search(read_template("page.css"))
    assert root is not None, "the style sheet begins with the colours of the light theme"
    return {name: value.strip() for name, value in _PROPERTY.findall(root[1])}


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingPartError.of_import(error, "vl_convert", "'steelyard[report]'") from error
    return vl_convert
