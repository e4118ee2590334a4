"""The prompts of a file, in categories of a taxonomy, screened in worker processes.

The file is read again wherever its cases are needed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.iteration import batched
from steelyard.core.plugins import build
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import number_of
from steelyard.core.types import Case
from steelyard.io.cases import read_cases, read_placed_cases
from steelyard.io.lines import read_toml, toml_places
from steelyard.io.progress import track
from steelyard.judging.prompt_models import Categories
from steelyard.prompts.classification import CategoryMapping, count_mapped, mapped, people_category
from steelyard.prompts.screening import ScreenedPrompt, screen_prompts
from steelyard.prompts.selection import Selection, SelectionConfig
from steelyard.prompts.taxonomy import parse_taxonomy, taxonomy
from steelyard.translation.screening import find_language_bound

_PROMPTS_A_BATCH = 256
_WORTH_PROCESSES_BYTES = 4_000_000
"""The bytes of a file from which worker processes save more than their start costs."""


class ScreenedFile(NamedTuple):
    """The prompts of a file: a reader of its cases, in categories of the user's taxonomy, and what was screened."""

    read: Callable[[], Iterator[Case]]
    screened: Sequence[ScreenedPrompt]
    categories: Categories

    def prompts(self) -> Iterator[tuple[Case, ScreenedPrompt]]:
        """Yield the cases with what was screened."""
        return zip(self.read(), self.screened, strict=True)

    def added(self, selection: Selection, harm: Mapping[int, str | None], bound: Mapping[int, str | None]) -> Selection:
        """Return the selection with all prompts added, and duplicates dropped; the answers are by place."""
        for place, (case, prompt) in enumerate(track(self.prompts(), "prompts: comparing")):
            selection.add(case.prompt, prompt, answer=harm.get(place), language_answer=bound.get(place))
        selection.drop_duplicates()
        return selection

    def mapping(self) -> CategoryMapping | None:
        """Count the categories that were mapped into a user's taxonomy; null without one."""
        if not self.categories.is_own:
            return None
        return count_mapped(Counter(case.prompt.category for case in self.read()), self.categories.tree)


def screen_file(cases: Path, config: SelectionConfig, categories: Categories, *, workers: int | None) -> ScreenedFile:
    """Screen the prompts of a file; null ``workers`` are one process a core for a large file."""
    if workers is None:
        workers = 0 if cases.stat().st_size > _WORTH_PROCESSES_BYTES else 1
    batches = batched((case.prompt for case in read_cases(cases)), _PROMPTS_A_BATCH)
    engine = build("engines", "local", {"workers": workers})
    parts = engine.map(partial(screen_prompts, config, find_language_bound), batches)
    screened = [prompt for part in track(parts, "prompts: screening (batches of prompts)") for prompt in part]
    return ScreenedFile(_reader(cases, categories), screened, categories)


def _reader(cases: Path, categories: Categories) -> Callable[[], Iterator[Case]]:
    """Return a function that reads the cases, with their categories in a user's taxonomy where one is given."""
    if not categories.is_own:
        return lambda: read_cases(cases)
    return lambda: (mapped(case, categories.tree) for case in read_cases(cases))


def read_categories(path: Path | None, human: Path | None, *, is_classified: bool) -> Categories:
    """Return the taxonomy and people's categories. Raises ConfigError for these without a language model."""
    if path is None:
        tree = taxonomy()
    else:
        with toml_places(path):
            tree = parse_taxonomy(read_toml(path), where=str(path))
    if human is None:
        return Categories(tree, path is not None, (), 0)
    if not is_classified:
        classify = Remedy("classify", ("KEY=VALUE",))
        do = Advice("name the model that gives categories: ", classify, " sets each of its model, base_url and kind")
        raise ConfigError("people's categories, and no language model to compare with them", where=str(human), do=do)
    read = [(case, people_category(case, tree, place)) for place, case in read_placed_cases(human)]
    labelled = tuple((case, tiers) for case, tiers in read if tiers)
    if not labelled:
        do = 'give prompts a category: {"prompt": {…, "category": ["mathematics"]}}'
        raise EvidenceError(f"none of {number_of(len(read), 'prompt')} has a category", where=str(human), do=do)
    return Categories(tree, path is not None, labelled, len(read) - len(labelled))
