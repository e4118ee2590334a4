"""The baseline "more markup is better": what a benchmark's labels owe to Markdown alone."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Case, Scores
from steelyard.plugins.models._text import response_text

# Each mark is one point: what a reader would see as formatting, at most once. Fences first, so that what stands inside
# code is not counted, then marks of whole lines, then marks within a line.
_FENCE = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_LINES = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+\S"  # heading
    r"|[-*+•][ \t]+\S|\d{1,3}[.)][ \t]+\S|\d{1,3}、[ \t]*\S"  # item of a list
    r"|>[ \t]*\S"  # quotation
    r"|\|.*\|[ \t]*$"  # row of a table
    r"|(?:-{3,}|\*{3,}|_{3,})[ \t]*$)",  # rule
    re.MULTILINE,
)
_WITHIN = re.compile(
    r"\*\*(?=\S).+?(?<=\S)\*\*|__(?=\S).+?(?<=\S)__"  # bold
    r"|`[^`\n]+`"  # code
    r"|\[[^\]\n]+\]\([^)\s]+\)"  # link or image
)


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Model:
    """Scores by the number of Markdown marks: headings, list items, table rows, bold, code, links and so on."""

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """One Scores a case, in order."""
        for case in cases:
            scores: dict[str, float | None] = {
                response.id: float(num_marks(response_text(response))) for response in case.responses
            }
            yield Scores(prompt=case.prompt.id, language=case.prompt.language, scores=scores)

    def protocol(self) -> dict[str, Any]:
        """The unit."""
        return {"model": "markup", "unit": "Markdown marks"}


def num_marks(text: str) -> int:
    """How many Markdown marks a text has; a block of code is one, whatever stands in it."""
    rest, num_fences = _FENCE.subn("", text)
    return num_fences + sum(1 for _ in _LINES.finditer(rest)) + sum(1 for _ in _WITHIN.finditer(rest))


def build(config: Config) -> Model:
    """The baseline."""
    return Model()
