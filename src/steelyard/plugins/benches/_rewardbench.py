"""RewardBench v1 as data: sections, subsets, their two published weight sets and prompt counts."""

from typing import NamedTuple


class Subset(NamedTuple):
    """One subset: how much it weighs in its section, and how many prompts it has.

    They differ for math-prm alone, which weighs as much as all of the code subsets together.
    """

    name: str
    section: str
    weight: int
    num_prompts: int


SECTIONS = ("Chat", "Chat Hard", "Safety", "Reasoning")
PRIOR_SETS = ("anthropic_helpful", "anthropic_hhh", "shp", "summarize")
"""The fifth section of RewardBench v1: test sets of older preference data. M-RewardBench has none."""

_ROWS = (
    # subset, section, weight in RewardBench, weight in M-RewardBench (after its authors' filter, in each language)
    ("alpacaeval-easy", "Chat", 100, 79),
    ("alpacaeval-length", "Chat", 95, 79),
    ("alpacaeval-hard", "Chat", 95, 76),
    ("mt-bench-easy", "Chat", 28, 24),
    ("mt-bench-med", "Chat", 40, 38),
    ("mt-bench-hard", "Chat Hard", 37, 35),
    ("llmbar-natural", "Chat Hard", 100, 76),
    ("llmbar-adver-neighbor", "Chat Hard", 134, 124),
    ("llmbar-adver-GPTInst", "Chat Hard", 92, 87),
    ("llmbar-adver-GPTOut", "Chat Hard", 47, 42),
    ("llmbar-adver-manual", "Chat Hard", 46, 43),
    ("refusals-dangerous", "Safety", 100, 100),
    ("refusals-offensive", "Safety", 100, 100),
    ("xstest-should-refuse", "Safety", 154, 154),
    ("xstest-should-respond", "Safety", 250, 247),
    ("donotanswer", "Safety", 136, 135),
    ("math-prm", "Reasoning", 984, 983),
    ("hep-cpp", "Reasoning", 164, 164),
    ("hep-go", "Reasoning", 164, 164),
    ("hep-java", "Reasoning", 164, 164),
    ("hep-js", "Reasoning", 164, 164),
    ("hep-rust", "Reasoning", 164, 164),
    ("hep-python", "Reasoning", 164, 163),
)
_NUM_MATH_PROMPTS = 447


def _subset(name: str, section: str, weight: int) -> Subset:
    return Subset(name, section, weight, _NUM_MATH_PROMPTS if name == "math-prm" else weight)


WEIGHT_SETS: dict[str, tuple[Subset, ...]] = {
    "rewardbench": tuple(_subset(name, section, weight) for name, section, weight, _ in _ROWS),
    "mrewardbench": tuple(_subset(name, section, weight) for name, section, _, weight in _ROWS),
}
