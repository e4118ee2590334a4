"""Plans of sampling as files: one's own or shipped, their models checked, and the prompts that these can answer."""

from collections import Counter
from pathlib import Path

import msgspec

from steelyard.core.errors import EvidenceError, FileError, Place, choices, listed
from steelyard.core.types import JsonObject
from steelyard.io.cases import read_cases
from steelyard.io.json_text import decode_json
from steelyard.io.lines import check_text, read_toml, read_whole, toml_places
from steelyard.judging.sampling import ModelChoices, choose_models
from steelyard.responses.plan import SamplingPlan, parse_plan

_SHIPPED = (Path(__file__).parents[1] / "recipes" / "plans", Path(__file__).parents[3] / "recipes" / "plans")


def chosen_plan(plan: Path) -> tuple[Path, ModelChoices]:
    """Return the file of a plan, and its models with their checked settings."""
    path = find_plan(plan)
    with toml_places(path):
        return path, choose_models(parse_plan(_read(path), where=str(path)), where=str(path))


def find_plan(plan: Path) -> Path:
    """Return the file of this path, or the shipped plan of this name. Raises FileError naming those plans."""
    if plan.is_file() or plan.suffix.lower() == ".toml":
        return plan
    shipped = shipped_plans()
    if str(plan) not in shipped:
        allowed = f"a .toml file, or {choices(str(plan), shipped)}"
        raise FileError("there is no such plan", where=str(plan), allowed=allowed)
    return shipped[str(plan)]


def shipped_plans() -> dict[str, Path]:
    """Return the plans that come with Steelyard, by name."""
    return {path.stem: path for folder in _SHIPPED for path in sorted(folder.glob("*.toml"))}


def check_prompts(cases: Path, plan: SamplingPlan) -> None:
    """Raise EvidenceError for a model that answers none of the prompts, and for a prompt that cannot be answered."""
    unused = {model.name: model for model in plan.models}
    languages: Counter[str] = Counter()
    for case in read_cases(cases):
        languages[case.prompt.language or "none"] += 1
        last = case.prompt.messages[-1].role if case.prompt.messages else "assistant"
        if last == "assistant" or (plan.rewrite is not None and last != "user"):
            problem = f"the prompt {case.prompt.id!r} does not end with a turn to answer"
            raise EvidenceError(problem, where=str(cases), do="end it with a message of the user")
        for name in [name for name, model in unused.items() if model.answers(case.prompt)]:
            del unused[name]
    if unused:
        problem = f"{listed(sorted(unused))} answers none of {languages.total():,} prompts"
        raise EvidenceError(
            problem,
            where=str(cases),
            allowed=f"languages {listed(sorted(languages))}",
            do="correct languages and categories of the model, or take it out of the plan",
        )


def _read(path: Path) -> JsonObject:
    """Return the tables of a plan: TOML, or JSON under a name that ends in .json."""
    if path.suffix.lower() != ".json":
        return read_toml(path)
    check_text(path)
    try:
        return decode_json(read_whole(path), Place(str(path)), JsonObject)
    except msgspec.ValidationError as error:
        raise FileError(
            f"not a plan in JSON ({error})", where=str(path), allowed='{"models": [{"chat": {…}}]}'
        ) from error
