"""The settings of `simulate`."""

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, choices
from steelyard.methods.annotation.annotators import HUMAN, LLM, Noise
from steelyard.methods.annotation.worsening import RULES


class Config(BaseConfig, frozen=True):
    """``num_prompts`` null takes all of the ``languages``; ``test_share`` of them are kept for testing.

    ``held_out_kind`` is the kind of worse answer that only ``kinds.jsonl`` has; null holds none out. Each prompt has
    its good answer and ``num_worse`` others of different kinds.
    """

    languages: tuple[str, ...] = ("zh", "en")
    num_prompts: int | None = None
    test_share: float = 0.35
    num_worse: int = 4
    held_out_kind: str | None = "code_switched"
    num_annotators: int = 8
    human: Noise = HUMAN
    llm: Noise = LLM
    seed: int = 0

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of worse answers that training may see."""
        return tuple(kind for kind in RULES if kind != self.held_out_kind)


def check_settings(config: Config, languages: tuple[str, ...]) -> None:
    """Raises ConfigError for what the corpus, in ``languages``, cannot serve."""
    for language in config.languages:
        if language not in languages:
            raise ConfigError(
                f"no corpus in {language!r}", where="simulate.languages", allowed=choices(language, languages)
            )
    if config.held_out_kind is not None and config.held_out_kind not in RULES:
        raise ConfigError(
            f"no kind {config.held_out_kind!r}",
            where="simulate.held_out_kind",
            allowed=choices(config.held_out_kind, RULES),
        )
    if not 0 < config.test_share < 1 or not config.languages:
        raise ConfigError(
            f"test_share {config.test_share}, languages {list(config.languages)}",
            where="simulate",
            allowed="a share between 0 and 1, and one language or more",
        )
    if not 2 <= config.num_worse <= len(config.kinds):
        raise ConfigError(
            f"num_worse is {config.num_worse}", where="simulate", allowed=f"2 to {len(config.kinds)}, one of a kind"
        )
