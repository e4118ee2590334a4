"""Three or four answers put in order, the comparison that CHEEMS gives its annotators: a verdict on every pair."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from steelyard.core.comparison import Answer, Comparison, Outcome, Question, Reply, Showing
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError
from steelyard.core.protocols import Judge
from steelyard.judging.reply_parsing import Form, ParsedReply, read_ranking
from steelyard.judging.verdicts import combine_orders
from steelyard.plugins.judges._prompt import Orders, PromptLanguage, Wording, in_orders, question, worded
from steelyard.plugins.judges._said import LABELS, Said, unread, why_missing


class Config(BaseConfig, frozen=True):
    """As for ``pairwise``. The order is written in brackets, as ``[[B > A = C]]``: there is no other form."""

    style: str = "plain"
    """The style of the prompt, by the model's family: plain, gpt, qwen, gemma and others."""
    form: Form | None = "brackets"
    """The form of the verdict in the reply; none takes the style's."""
    reason: bool | None = None
    """Whether the judge gives reasons before its verdict; none takes the style's."""
    max_tokens: int | None = None
    """The longest reply in tokens; none takes the style's."""
    prompt_language: PromptLanguage = "item"
    """The language of the prompt; item is Chinese for Chinese items and English for all others."""
    criteria: bool = True
    """Whether the prompt names criteria, by the item's category."""
    orders: Orders = "both"
    """Whether each comparison is made in both orders of the answers, or in one."""


class Ranked:
    """A Judge of two to four responses."""

    fewest, most = 2, 4

    def __init__(self, config: Config, wording: Wording) -> None:
        self.config = config
        self.wording = wording

    def num_questions(self, comparison: Comparison) -> int:
        """One for each order."""
        return 2 if self.config.orders == "both" else 1

    def questions(self, comparison: Comparison) -> tuple[Question, ...]:
        """One for each order, the comparison's own first."""
        shown = in_orders(comparison.responses, self.config.orders)
        labels = LABELS[: len(comparison.responses)]
        return tuple(question("ranking", comparison.prompt, one, self.wording, labels=labels) for one in shown)

    def read(self, comparison: Comparison, replies: Sequence[Reply]) -> Answer:
        """A verdict on every pair of what was shown."""
        names = tuple(response.id for response in comparison.responses)
        orders = in_orders(names, self.config.orders)
        tiers = [self._tiers(shown, reply) for shown, reply in zip(orders, replies, strict=True)]
        found = []
        for left, right in combinations(names, 2):
            showings = [_showing(shown, own, left, right) for shown, own in zip(orders, tiers, strict=True)]
            found.append(combine_orders(left, right, showings))
        return Answer(verdicts=tuple(found))

    def protocol(self) -> dict[str, Any]:
        """The wording and the orders."""
        return {"judge": "ranking", "orders": self.config.orders} | self.wording.protocol()

    def _tiers(self, shown: tuple[str, ...], reply: Reply) -> dict[str, int] | Said:
        """The tier of each response, 0 the best, or why there is none."""
        missing = why_missing(reply)
        if missing is not None:
            return missing
        found = read_ranking(reply.text or "", LABELS[: len(shown)])
        if isinstance(found, ParsedReply):
            return unread(reply.text or "", found.detail)
        return {shown[LABELS.index(label)]: place for place, tier in enumerate(found) for label in tier}


def _showing(shown: tuple[str, ...], tiers: dict[str, int] | Said, left: str, right: str) -> Showing:
    if isinstance(tiers, Said):
        assert tiers.outcome is not None, "a reason for none"
        return Showing(shown=shown, outcome=tiers.outcome, detail=tiers.detail)
    outcome: Outcome = "tie" if tiers[left] == tiers[right] else ("left" if tiers[left] < tiers[right] else "right")
    return Showing(shown=shown, outcome=outcome)


def build(config: Config) -> Judge:
    """The judge. Raises ConfigError for a style that there is not, and for another form."""
    wording = worded(config)
    if wording.form != "brackets":
        raise ConfigError(f"form={wording.form!r} carries no ranking", where="judge.form", allowed="brackets")
    return Ranked(config, wording)
