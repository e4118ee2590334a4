"""The summary of a training in its ``run.json``, as it is written and read; needs no torch."""

from steelyard.core.types import OverLength, Record

_NUM_LOWEST = 3
"""The number of groups with the lowest accuracy that a log line names."""


class GroupAccuracy(Record, frozen=True):
    """Micro accuracy (over pairs) and exact match (over prompts) of some prompts, with their counts."""

    accuracy: float
    exact_match: float
    num_pairs: int
    num_prompts: int


class HeldOutAccuracy(Record, frozen=True):
    """Accuracy and exact match of all held-out prompts, and by category and by language where a case names them."""

    accuracy: float
    exact_match: float
    num_pairs: int
    num_prompts: int
    by_category: dict[str, GroupAccuracy]
    by_language: dict[str, GroupAccuracy]

    def sentence(self) -> str:
        """Return the figures in one line: of all prompts, and of the groups with the lowest accuracy."""
        line = f"held-out accuracy {self.accuracy:.3f}, exact match {self.exact_match:.3f}"
        for groups in (self.by_category, self.by_language):
            if len(groups) > 1:
                lowest = sorted(groups.items(), key=lambda item: item[1].accuracy)[:_NUM_LOWEST]
                names = ", ".join(f"{name} {group.accuracy:.3f}" for name, group in lowest)
                line += f"; {'lowest of ' + str(len(groups)) + ': ' if len(groups) > _NUM_LOWEST else ''}{names}"
        return line

    def figures(self) -> dict[str, float]:
        """Return accuracy and exact match of all prompts and of each group, by paths such as ``held_out/accuracy``."""
        figures = {"held_out/accuracy": self.accuracy, "held_out/exact_match": self.exact_match}
        for kind, groups in (("by_category", self.by_category), ("by_language", self.by_language)):
            for name, group in groups.items():
                figures[f"held_out/{kind}/{name}/accuracy"] = group.accuracy
                figures[f"held_out/{kind}/{name}/exact_match"] = group.exact_match
        return figures


class LengthSummary(Record, frozen=True):
    """The effect of the length limit on a file: responses, pairs and prompts over it, cut (``is_cut``) or left out.

    ``by_language`` counts responses (``num_responses``, ``num_too_long``) by language.
    """

    max_length: int
    over_length: OverLength
    longest: int
    num_responses: int
    num_too_long: int
    num_pairs: int
    num_pairs_over: int
    num_prompts: int
    num_prompts_over: int
    is_cut: bool
    by_language: dict[str, dict[str, int]]


class TrainingSummary(Record, frozen=True):
    """The summary of a training in its ``run.json``. ``held_out`` was measured with the weights that are saved."""

    kernel: str
    num_steps: int
    learning_rate: float | None
    prompts_per_step: int | None
    regulariser: float
    num_prompts: int
    num_responses: int
    num_weights: int
    num_pairs: int
    share_of_pairs_kept: float
    length: LengthSummary
    final_loss: float
    held_out: HeldOutAccuracy | None
    last_step: int
