"""A whole number from 1 to 10 for each answer, asked for one at a time: no order, and no place to be biased by."""

from collections.abc import Sequence
from typing import Any

from steelyard.core.comparison import Answer, Comparison, GivenRating, Question, Reply
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError
from steelyard.core.protocols import Judge
from steelyard.judging.reply_parsing import Form, read_rating
from steelyard.plugins.judges._prompt import PromptLanguage, Wording, question, worded
from steelyard.plugins.judges._said import unread, why_missing

_FORMS = ("brackets", "letter", "json")


class Config(BaseConfig, frozen=True):
    """As for ``pairwise``; ``letter`` is here a number alone."""

    style: str = "plain"
    """The style of the prompt, by the model's family: plain, gpt, qwen, gemma and others."""
    form: Form | None = None
    """The form of the verdict in the reply; none takes the style's."""
    reason: bool | None = None
    """Whether the judge gives reasons before its verdict; none takes the style's."""
    max_tokens: int | None = None
    """The longest reply in tokens; none takes the style's."""
    prompt_language: PromptLanguage = "item"
    """The language of the prompt; item is Chinese for Chinese items and English for all others."""
    criteria: bool = True
    """Whether the prompt names criteria, by the item's category."""


class Rated:
    """A Judge of any number of responses: ratings, and no verdicts."""

    fewest, most = 1, 1

    def __init__(self, config: Config, wording: Wording) -> None:
        self.config = config
        self.wording = wording

    def num_questions(self, comparison: Comparison) -> int:
        """One for each response."""
        return len(comparison.responses)

    def questions(self, comparison: Comparison) -> tuple[Question, ...]:
        """One for each response, which is shown alone."""
        return tuple(
            question("rating", comparison.prompt, (one,), self.wording, labels=()) for one in comparison.responses
        )

    def read(self, comparison: Comparison, replies: Sequence[Reply]) -> Answer:
        """A number for each response, or the reason why there is none: never a number that stands for a failure."""
        rated = zip(comparison.responses, replies, strict=True)
        return Answer(ratings=tuple(_rating(response.id, reply) for response, reply in rated))

    def protocol(self) -> dict[str, Any]:
        """The wording."""
        return {"judge": "rating"} | self.wording.protocol()


def _rating(name: str, reply: Reply) -> GivenRating:
    missing = why_missing(reply)
    if missing is None:
        reading = read_rating(reply.text or "")
        if reading.value is not None:
            return GivenRating(response=name, value=float(reading.value))
        missing = unread(reply.text or "", reading.detail)
    return GivenRating(response=name, value=None, outcome=missing.outcome, detail=missing.detail)


def build(config: Config) -> Judge:
    """The judge. Raises ConfigError for a form that carries no number."""
    wording = worded(config)
    if wording.form not in _FORMS:
        found = f"form={wording.form!r} carries no rating"
        raise ConfigError(found, where="judge.form", allowed=", ".join(_FORMS))
    return Rated(config, wording)
