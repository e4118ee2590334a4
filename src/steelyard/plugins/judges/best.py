"""Which of two to four answers is the best, asked in the order given and in reverse."""

from collections.abc import Sequence
from typing import Any

from steelyard.core.comparison import Answer, Comparison, PairVerdict, Question, Reply, Showing
from steelyard.core.config import Config as BaseConfig
from steelyard.core.protocols import Judge
from steelyard.judging.reply_parsing import Form
from steelyard.judging.verdicts import combine_orders
from steelyard.plugins.judges._prompt import Orders, PromptLanguage, Wording, in_orders, question, worded
from steelyard.plugins.judges._said import LABELS, Said, choice_of, odds_asked


class Config(BaseConfig, frozen=True):
    """As for ``pairwise``; there is no tie to offer among more than two."""

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
    orders: Orders = "both"
    """Whether each comparison is made in both orders of the answers, or in one."""
    least_odds: float = 0.5
    """With first_token: the least probability of the labels together for a readable verdict."""


class Best:
    """A Judge of two to four responses. The best one is better than each other; of the others nothing is said."""

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
        return tuple(question("best", comparison.prompt, one, self.wording, labels=labels) for one in shown)

    def read(self, comparison: Comparison, replies: Sequence[Reply]) -> Answer:
        """The best over each other; two different choices are a tie with each other, and both over the rest.

        Where a reply cannot be read there is no verdict on any pair.
        """
        names = tuple(response.id for response in comparison.responses)
        orders = in_orders(names, self.config.orders)
        form, least_odds = self.wording.form, self.config.least_odds
        said = [choice_of(reply, form, LABELS[: len(names)], least_odds=least_odds) for reply in replies]
        chosen = {shown[one.place] for shown, one in zip(orders, said, strict=True) if one.place is not None}
        is_read = all(one.place is not None for one in said)
        pairs = [
            (left, right)
            for place, left in enumerate(names)
            for right in names[place + 1 :]
            if not is_read or left in chosen or right in chosen
        ]
        return Answer(verdicts=tuple(_verdict(left, right, orders, said) for left, right in pairs))

    def protocol(self) -> dict[str, Any]:
        """The wording and the orders."""
        own = {"judge": "best", "orders": self.config.orders}
        return own | self.wording.protocol() | odds_asked(self.wording.form, self.config.least_odds)


def _verdict(left: str, right: str, orders: Sequence[tuple[str, ...]], said: Sequence[Said]) -> PairVerdict:
    """The verdict on one pair: a reply that chose a third answer says nothing of these two."""
    showings: list[Showing] = []
    for shown, one in zip(orders, said, strict=True):
        if one.place is None:
            assert one.outcome is not None, "a reason for none"
            showings.append(Showing(shown=shown, outcome=one.outcome, detail=one.detail))
        elif shown[one.place] in (left, right):
            showings.append(Showing(shown=shown, outcome="left" if shown[one.place] == left else "right"))
    if not any(one.place is None for one in said):
        return combine_orders(left, right, showings)
    return combine_orders(left, right, [one for one in showings if one.outcome not in ("left", "right")])


def build(config: Config) -> Judge:
    """The judge. Raises ConfigError for a style that there is not, and for reasons in a form without place for them."""
    return Best(config, worded(config))
