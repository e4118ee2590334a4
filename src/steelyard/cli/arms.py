"""How experiments of trainings are shown: what is planned, each arm, and differences with their intervals."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.recipes.experiments import Arm, ArmDifference
    from steelyard.recipes.recipe import Recipe
    from steelyard.statistics.intervals import Estimate


def planned_lines(recipe: "Recipe", folder: Path) -> Iterator[str]:
    """A line for each stage with its state. Raises what a stage would refuse later."""
    from steelyard.recipes.preconditions import check_recipe
    from steelyard.recipes.run import check_files, plan

    check_files(recipe, folder)
    check_recipe(recipe, folder)
    for one in plan(recipe, folder):
        yield f"{one.state:10}{one.step.name}: {one.step.call.verb}"


def arm_lines(arms: Sequence["Arm"]) -> Iterator[str]:
    """The table of the arms."""
    width = max(len(one.name) for one in arms)
    yield f"{'arm':{width}}  prompts   pairs  accuracy [95 %]       seeds ±  exact match [95 %]"
    for one in arms:
        yield (
            f"{one.name:{width}}  {one.num_prompts:7,.0f} {one.num_pairs:7,.0f}  {with_interval(one.accuracy)}  "
            f"{one.spread:7.3f}  {with_interval(one.exact_match)}"
        )


def difference_lines(against: Iterable["ArmDifference"]) -> Iterator[str]:
    """The differences; a star where one is beyond doubt after correction."""
    for one in against:
        beyond = " *" if one.p_corrected < 0.05 else ""
        yield f"{one.first} minus {one.second}: {with_interval(one.comparison.accuracy, '+')}{beyond}"


def with_interval(estimate: "Estimate", sign: str = "") -> str:
    """``0.650 [0.607, 0.687]``."""
    if estimate.value is None or estimate.low is None:
        return "none"
    return f"{estimate.value:{sign}.3f} [{estimate.low:{sign}.3f}, {estimate.high:{sign}.3f}]"
