"""Which of two answers is better, asked in both orders: verdicts that disagree are a tie."""

from collections.abc import Sequence
from typing import Any

from steelyard.core.comparison import Answer, Comparison, Outcome, Question, Reply, Showing
from steelyard.core.config import Config as BaseConfig
from steelyard.core.protocols import Judge
from steelyard.judging.reply_parsing import Form
from steelyard.judging.verdicts import combine_orders
from steelyard.plugins.judges._prompt import Orders, PromptLanguage, Wording, in_orders, question, worded
from steelyard.plugins.judges._said import LABELS, choice_of, odds_asked


class Config(BaseConfig, frozen=True):
    """``style`` names how the model's family is asked; ``form``, ``reason`` and ``max_tokens`` change that.

    ``orders``: ``both`` asks twice, with the answers in either order; ``one`` only in the order of the comparison.
    ``ties`` offers a tie as a third verdict. ``prompt_language``: ``item`` asks about Chinese items in Chinese and
    about all others in English. ``criteria`` says what counts, by the item's category. The form ``first_token`` is read
    where the labels together have a probability of ``least_odds``: a small model may need less.

    Differs from: CHEEMS (figures 11 and 12), which asks in one order, without reasons and with a tie on offer. Here
    both orders are asked, with reasons, and verdicts that disagree are the tie. ``orders=one``, ``reason=false`` and
    ``ties=true`` are its settings. M-RewardBench (figure 6) asks in one order, with reasons and without a tie.
    """

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
    ties: bool = False
    """Whether a tie is offered as a third verdict."""
    least_odds: float = 0.5
    """With first_token: the least probability of the labels together for a readable verdict."""


class Pairwise:
    """A Judge of two responses."""

    fewest, most = 2, 2

    def __init__(self, config: Config, wording: Wording) -> None:
        self.config = config
        self.wording = wording
        self.labels = LABELS[:3] if config.ties else LABELS[:2]

    def num_questions(self, comparison: Comparison) -> int:
        """One for each order."""
        return 2 if self.config.orders == "both" else 1

    def questions(self, comparison: Comparison) -> tuple[Question, ...]:
        """One for each order, the comparison's own first."""
        shown = in_orders(comparison.responses, self.config.orders)
        return tuple(question("pair", comparison.prompt, one, self.wording, labels=self.labels) for one in shown)

    def read(self, comparison: Comparison, replies: Sequence[Reply]) -> Answer:
        """One verdict on the pair; ``left`` is the first of the comparison."""
        left, right = (response.id for response in comparison.responses)
        orders = in_orders((left, right), self.config.orders)
        showings = [self._showing(shown, left, reply) for shown, reply in zip(orders, replies, strict=True)]
        return Answer(verdicts=(combine_orders(left, right, showings),))

    def protocol(self) -> dict[str, Any]:
        """The wording, the orders, and whether a tie is offered."""
        own = {"judge": "pairwise", "orders": self.config.orders, "ties": self.config.ties}
        return own | self.wording.protocol() | odds_asked(self.wording.form, self.config.least_odds)

    def _showing(self, shown: tuple[str, ...], left: str, reply: Reply) -> Showing:
        said = choice_of(reply, self.wording.form, self.labels, least_odds=self.config.least_odds)
        if said.place is None:
            assert said.outcome is not None, "a reason for none"
            return Showing(shown=shown, outcome=said.outcome, detail=said.detail)
        outcome: Outcome = "tie" if said.place == 2 else ("left" if shown[said.place] == left else "right")
        return Showing(shown=shown, outcome=outcome)


def build(config: Config) -> Judge:
    """The judge. Raises ConfigError for a style that there is not, and for reasons in a form without place for them."""
    return Pairwise(config, worded(config))
