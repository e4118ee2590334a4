"""The summary of a run of ``sample``: responses, lengths, refusals, cut-offs and repeated texts of each model."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from steelyard.core.types import Meta, Record
from steelyard.judging.sampling import SampleResult
from steelyard.judging.token_use import TokenUse


class LengthQuantiles(Record, frozen=True, kw_only=True):
    """The 5 %, 50 % and 95 % quantiles of the lengths of ``n`` texts in characters; null without texts.

    A quantile is the smallest length that at least this share of the texts does not exceed.
    """

    n: int = 0
    low: int | None = None
    median: int | None = None
    high: int | None = None


class ResponseCounts(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Outcomes of the ``num_planned`` samples of one model that the cases did not have.

    ``num_responses`` became responses, ``num_repeated`` of these with the text of another response; kept refusals and
    texts that were cut off are among them. ``refused``, ``cut_off``, ``empty`` and ``failed`` count samples by outcome,
    whether they were kept or not. ``num_prompts``: the prompts that the model was drawn for.
    """

    num_planned: int
    num_responses: int
    num_repeated: int
    refused: int
    cut_off: int
    empty: int
    failed: int
    num_prompts: int
    characters: LengthQuantiles


class ModelMeetings(Record, frozen=True, kw_only=True):
    """The number of prompts that two models were both drawn for: the least and the most of all pairs of models."""

    fewest: int
    most: int


class SamplingSummary(Record, frozen=True, kw_only=True):
    """The summary of a run of ``sample``; ``models`` and ``tokens`` by name, ``failed`` requests by reason.

    ``responses_per_prompt`` counts prompts by their number of responses, those that they had before included.
    ``meetings`` is null for a plan of one model. ``new_prompts`` counts the prompts that models wrote from others, by
    way; null where they wrote responses.
    """

    models: dict[str, ResponseCounts]
    tokens: dict[str, TokenUse]
    responses_per_prompt: dict[str, int]
    meetings: ModelMeetings | None
    failed: dict[str, int]
    protocol: Meta
    new_prompts: dict[str, int] | None = None

    @property
    def num_responses(self) -> int:
        """The number of responses that the models wrote, repeated texts counted each time."""
        return sum(counts.num_responses for counts in self.models.values())


class ResponseCounter:
    """Counts samples as they become responses."""

    def __init__(self, models: Sequence[str]) -> None:
        self._models = tuple(models)
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self._lengths: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._repeated: Counter[str] = Counter()
        self._prompts: Counter[str] = Counter()
        self._meetings: Counter[tuple[str, str]] = Counter()
        self._per_prompt: Counter[int] = Counter()

    def add(self, results: Iterable[SampleResult], *, num_responses: int) -> None:
        """Count the new samples of one case, which has ``num_responses`` responses now."""
        drawn: set[str] = set()
        for result in results:
            name = result.sample.model
            drawn.add(name)
            self._outcomes[name, result.outcome] += 1
            self._repeated[name] += result.is_repeated
            if result.num_characters:
                self._lengths[name][result.num_characters] += 1
        self._prompts.update(drawn)
        self._meetings.update(combinations([name for name in self._models if name in drawn], 2))
        self._per_prompt[num_responses] += 1

    def models(self) -> dict[str, ResponseCounts]:
        """Return the counts of every model, in the order of the plan."""
        return {
            name: ResponseCounts(
                num_planned=sum(number for (model, _), number in self._outcomes.items() if model == name),
                num_responses=self._lengths[name].total(),
                num_repeated=self._repeated[name],
                refused=self._outcomes[name, "refused"],
                cut_off=self._outcomes[name, "cut off"],
                empty=self._outcomes[name, "empty"],
                failed=self._outcomes[name, "failed"],
                num_prompts=self._prompts[name],
                characters=quantiles(self._lengths[name]),
            )
            for name in self._models
        }

    def responses_per_prompt(self) -> dict[str, int]:
        """Return the number of prompts by the number of their responses."""
        return {str(number): self._per_prompt[number] for number in sorted(self._per_prompt)}

    def meetings(self) -> ModelMeetings | None:
        """Return how often two models were drawn for one prompt; null for one model."""
        numbers = [self._meetings[pair] for pair in combinations(self._models, 2)]
        return ModelMeetings(fewest=min(numbers), most=max(numbers)) if numbers else None


def quantiles(lengths: Mapping[int, int]) -> LengthQuantiles:
    """Return the quantiles of lengths that are counted by length."""
    n = sum(lengths.values())
    if not n:
        return LengthQuantiles()
    ends: list[int] = []
    for share in (0.05, 0.5, 0.95):
        passed = 0
        for length in sorted(lengths):
            passed += lengths[length]
            if passed >= share * n:
                ends.append(length)
                break
    low, median, high = ends
    return LengthQuantiles(n=n, low=low, median=median, high=high)
