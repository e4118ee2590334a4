"""Training examples from cases: token ids of every used response, and counts of left-out answers by reason."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress, islice
from os.path import commonprefix
from typing import Any, NamedTuple

import numpy as np

from steelyard.core.errors import EvidenceError, ModelError
from steelyard.core.iteration import batched
from steelyard.core.remedies import FILE, Advice, Command, Remedy, joined
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Case, OverLength, Response
from steelyard.curation.input_checks import are_unwinnable, pair_table
from steelyard.networks.conversation import Encoded, Rendering, encode_all, render
from steelyard.networks.ratings import IndexedRating, pairs_by_ratings, targets_of
from steelyard.networks.settings import TargetScale
from steelyard.ranking.pairs import TIES, UNLISTED, IndexedPair, PairChoice, num_beyond_listed, pairs_of, ties_of
from steelyard.statistics.groups import UNCATEGORISED, prompt_names
from steelyard.training.config import LengthSummary

EQUAL_TEXTS, EQUAL_TOKENS, WEIGHTLESS = "pairs of equal texts", "pairs of equal tokens", "pairs of weight 0"
"""The names under which pairs are counted that no training can order, or that it would not read."""
UNRATED = "responses without a rating"
"""The name under which responses are counted that a loss of ratings does not use."""
OVER = "every rated answer is over the limit"
_SHARE_OF_PAIRS = 0.99
"""The share of pairs for which a limit below the longest is suggested."""
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-12, 1e12
"""The range of weights within which the costs of a step keep single precision; smaller ones count as 0."""
_MOST_MARGIN = 1e12
"""The largest margin either way: greater ones are far from any reward, and infinite in single precision."""
_NUM_CHECKED = 32
"""The number of cases whose template is checked: it treats all cases alike."""
_NUM_ENCODED = 64
"""The number of cases whose answers are encoded side by side."""


class Example(NamedTuple):
    """One prompt: token ids by response, and pairs whose ends are positions among these.

    ``ties`` are pairs that were judged equal and ``ratings`` targets of rows, where the loss reads them. ``name``,
    ``category`` and ``language`` identify the case; examples that share one of ``prompt_names`` are one prompt to
    intervals.
    """

    rows: tuple[tuple[int, ...], ...]
    pairs: tuple[IndexedPair, ...]
    ties: tuple[IndexedPair, ...] = ()
    name: str = ""
    category: str = ""
    language: str | None = None
    prompt_names: tuple[str, ...] = ()
    ratings: tuple[IndexedRating, ...] = ()


class LengthCounter:
    """Counts lengths. A pair is lost where either end is over the limit, and a prompt where all it has is lost."""

    def __init__(self, max_length: int, over_length: OverLength) -> None:
        self.max_length = max_length
        self.over_length: OverLength = over_length
        self.num_prompts = 0
        self._num_prompts_over = 0
        self._needs: list[int] = []
        self._rated: list[int] = []
        self._by_language: dict[str, dict[str, int]] = {}

    def add(
        self,
        lengths: Mapping[int, int],
        pairs: Sequence[IndexedPair],
        ratings: Sequence[IndexedRating] = (),
        *,
        language: str | None,
    ) -> None:
        """Count one case: the tokens of each used response, by position, the pairs and the ratings."""
        needs = [max(lengths[pair.better], lengths[pair.worse]) for pair in pairs]
        rated = [lengths[rating.response] for rating in ratings]
        self._needs += needs
        self._rated += rated
        self.num_prompts += bool(needs or rated)
        self._num_prompts_over += bool(needs or rated) and min(needs + rated) > self.max_length
        counts = self._by_language.setdefault(language or "unknown", {"num_responses": 0, "num_too_long": 0})
        counts["num_responses"] += len(lengths)
        counts["num_too_long"] += sum(length > self.max_length for length in lengths.values())

    @property
    def num_pairs(self) -> int:
        """The number of pairs of the data, including those that are lost."""
        return len(self._needs)

    def summary(self) -> LengthSummary:
        """Return the counts for ``run.json``."""
        return LengthSummary(
            max_length=self.max_length,
            over_length=self.over_length,
            longest=max(self._needs + self._rated, default=0),
            num_responses=sum(counts["num_responses"] for counts in self._by_language.values()),
            num_too_long=sum(counts["num_too_long"] for counts in self._by_language.values()),
            num_pairs=self.num_pairs,
            num_pairs_over=sum(need > self.max_length for need in self._needs),
            num_prompts=self.num_prompts,
            num_prompts_over=self._num_prompts_over,
            is_cut=self.over_length in ("left", "right"),
            by_language=dict(sorted(self._by_language.items())),
        )

    def sentences(self) -> Iterator[str]:
        """Yield the sentences that are logged before training; none where everything fits."""
        counts = self.summary()
        if not counts.num_too_long:
            return
        verb = verb_for(counts.num_too_long, "is", "are")
        action = f"cut on the {self.over_length}" if counts.is_cut else "left out"
        yield (
            f"{_share(counts.num_too_long, counts.num_responses, 'answer')} {verb} longer than {self.max_length:,} "
            "tokens "
            f"and {action}{_languages(self._by_language)}"
        )
        pairs, prompts = counts.num_pairs_over, counts.num_prompts_over
        of_pairs = (
            (f"{verb_for(pairs, 'holds', 'hold')} a cut answer")
            if counts.is_cut
            else f"{verb_for(pairs, 'is', 'are')} lost with them"
        )
        of_prompts = (
            (f"{verb_for(prompts, 'holds', 'hold')} cut answers alone")
            if counts.is_cut
            else f"{verb_for(prompts, 'is', 'are')} lost whole"
        )
        lost_pairs = f"{_share(counts.num_pairs_over, counts.num_pairs, 'pair')} {of_pairs}; " if self._needs else ""
        yield f"{lost_pairs}{_share(counts.num_prompts_over, counts.num_prompts, 'prompt')} {of_prompts}"
        most = int(np.quantile(self._needs or self._rated, _SHARE_OF_PAIRS, method="higher"))
        is_shorter = self.max_length < most < counts.longest
        noun = "pairs" if self._needs else "answers"
        near = (Remedy("max_length", most), f" keeps {_SHARE_OF_PAIRS:.0%} of the {noun}, ") if is_shorter else ()
        left = Remedy("over_length", "left")
        cut = () if counts.is_cut else ("; ", left, " keeps their ends, right their beginnings")
        yield Advice("to keep them whole: ", *near, Remedy("max_length", counts.longest), " keeps all", *cut)


def _share(number: int, total: int, noun: str) -> str:
    return f"{number:,} of {total:,} ({number / max(total, 1):.1%}) {noun if total == 1 else f'{noun}s'}"


def _languages(by_language: Mapping[str, Mapping[str, int]]) -> str:
    if len(by_language) < 2:
        return ""
    counts = {name: (group["num_too_long"], group["num_responses"]) for name, group in by_language.items()}
    shares = {name: number / total for name, (number, total) in counts.items() if number}
    return f" ({', '.join(f'{name} {share:.1%}' for name, share in sorted(shares.items(), key=lambda pair: -pair[1]))})"


class Examples(NamedTuple):
    """The examples of a file, the counts of left-out cases and answers, and those of the length limit."""

    examples: tuple[Example, ...]
    num_in: int
    dropped: Counter[str]
    noted: Counter[str]
    length: LengthCounter

    @property
    def num_pairs(self) -> int:
        """The number of comparable pairs."""
        return sum(len(example.pairs) for example in self.examples)

    @property
    def num_ratings(self) -> int:
        """The number of rated responses."""
        return sum(len(example.ratings) for example in self.examples)

    @property
    def num_responses(self) -> int:
        """The number of responses in a pair or with a rating; each is computed once in an epoch."""
        return sum(len(example.rows) for example in self.examples)


class EvidenceChoice(NamedTuple):
    """Evidence that is read from cases: which pairs, whether ties, and ratings where a scale is named.

    ``pair_weight`` multiplies the weights of pairs beside ratings; at 0 they are not read. Held-out cases
    (``is_held_out``) lose pairs of equal texts. Those with ratings and without pairs have the pairs that their ratings
    order.
    """

    pairs: PairChoice | None = None
    reads_ties: bool = False
    ratings: TargetScale | None = None
    pair_weight: float = 1.0
    is_held_out: bool = False

    def evidence_of(self, case: Case, *, where: str) -> "_Evidence":
        """Return the pairs, ties and ratings of a case. Raises EvidenceError for a weight out of range."""
        ratings = () if self.ratings is None else targets_of(case, self.ratings)
        pairs = pairs_of(case, self.pairs) if self.pair_weight else ()
        for pair in pairs:
            if not 0 <= pair.weight <= _MOST_WEIGHT:
                raise EvidenceError(
                    f"a pair of prompt {case.prompt.id!r} weighs {pair.weight}",
                    where=where,
                    allowed=f"weights of 0 to {_MOST_WEIGHT:g}",
                )
            if not abs(pair.margin) <= _MOST_MARGIN:
                raise EvidenceError(
                    f"a pair of prompt {case.prompt.id!r} has the margin {pair.margin:g}",
                    where=where,
                    allowed=f"margins of {-_MOST_MARGIN:g} to {_MOST_MARGIN:g}, in the unit of rewards",
                )
        if self.pair_weight != 1:
            pairs = tuple(pair._replace(weight=pair.weight * self.pair_weight) for pair in pairs)
        if self.is_held_out and not pairs:
            pairs = pairs_by_ratings(ratings)
        return _Evidence(pairs, ties_of(case, pairs) if self.reads_ties else (), ratings)


def make_examples(
    cases: Iterable[Case], tokenizer: Any, rendering: Rendering, choice: EvidenceChoice, *, where: str
) -> Examples:
    """Encode every case with the evidence of the choice.

    The rendering decides whether an answer over the length limit is left out with its pairs, cut (both counted), or
    refused. Raises EvidenceError for refused answers, and where no pair is left, nor any rating where these are read.
    """
    examples: list[Example] = []
    dropped: Counter[str] = Counter()
    noted: Counter[str] = Counter()
    too_long: list[str] = []
    dimensions: Counter[str] = Counter()
    length = LengthCounter(rendering.max_length, rendering.over_length)
    num_in, num_judged = 0, 0
    for case, evidence, encoded in _encoded(cases, tokenizer, rendering, choice, where=where):
        num_in += 1
        num_judged += bool(case.judgments)
        dimensions.update(rating.dimension for rating in case.ratings)
        over = {index for index, answer in encoded.items() if answer.is_over_length}
        too_long += [
            f"{case.prompt.id} / {case.responses[index].id} ({number_of(encoded[index].length, 'token')})"
            for index in sorted(over)
        ]
        noted[UNLISTED] += num_beyond_listed(case, evidence.pairs) if choice.pair_weight else 0
        noted["responses in no pair" if choice.ratings is None else UNRATED] += len(case.responses) - len(encoded)
        lengths = {index: answer.length for index, answer in encoded.items()}
        length.add(lengths, evidence.pairs, evidence.ratings, language=case.prompt.language)
        usable = _usable(case, evidence, encoded, choice, cuts=rendering.cuts, noted=noted)
        example = _example(case, usable, {index: answer.ids for index, answer in encoded.items()})
        noted[TIES] += len(example.ties)
        if example.pairs or example.ties or example.ratings:
            examples.append(example)
        elif any(evidence) and over:
            dropped["every pair has an answer over the limit" if choice.ratings is None else OVER] += 1
        else:
            is_relative = choice.ratings is not None and choice.ratings.center == "prompt" and case.ratings
            unrated = "fewer than two rated responses" if is_relative else "no rating"
            dropped["no comparable pair" if choice.ratings is None else unrated] += 1
    if too_long and rendering.over_length == "refuse":
        _refuse_length(too_long, rendering, where)
    is_rated = choice.ratings is not None and not choice.is_held_out
    if not any(example.pairs or (is_rated and example.ratings) for example in examples):
        problem = f"none of {number_of(num_in, 'case')} has a comparable pair"
        if too_long and not rendering.cuts:
            over = f"{len(too_long)} are, the first: {too_long[0]}"
            raise EvidenceError(
                f"{problem} without an answer over {number_of(rendering.max_length, 'token')} ({over})",
                where=where,
                do=Advice("raise ", Remedy("max_length"), ", or say ", Remedy("over_length", "left")),
            )
        reasons = [f"{name} {noted[name]:,}" for name in (EQUAL_TEXTS, EQUAL_TOKENS, WEIGHTLESS) if noted[name]]
        raise EvidenceError(
            ": ".join([problem, ", ".join(reasons)] if reasons else [problem]),
            where=where,
            allowed="pairs or a ranking of at least two tiers, of different texts and with weights above 0",
            do=_way_to_pairs(where, num_judged, Counter() if choice.ratings else dimensions),
        )
    num_ties, noted = noted[TIES], +noted
    if choice.reads_ties:
        noted[TIES] = num_ties  # also 0: the loss then learns its parameter from nothing
    return Examples(tuple(examples), num_in, dropped, noted, length)


def _usable(
    case: Case,
    evidence: "_Evidence",
    encoded: Mapping[int, Encoded],
    choice: EvidenceChoice,
    *,
    cuts: bool,
    noted: Counter[str],
) -> "_Evidence":
    """Return the evidence without answers over the limit and pairs that cannot be ordered, and count these."""
    over = {index for index, answer in encoded.items() if answer.is_over_length}
    if cuts:
        noted["cut answers"] += len(over)
    else:
        noted["answers over the limit, left out"] += len(over)
        within = evidence.where(lambda pair: over.isdisjoint(pair[:2]))
        within = within._replace(ratings=tuple(rating for rating in within.ratings if rating.response not in over))
        noted["pairs lost with them"] += len(evidence.pairs) - len(within.pairs)
        evidence = within
    if choice.is_held_out:
        every = (*evidence.pairs, *evidence.ties)
        equal = set(compress(every, are_unwinnable([case], pair_table([every]))))
        winnable = evidence.where(lambda pair: pair not in equal)
        noted[EQUAL_TEXTS] += len(evidence.pairs) - len(winnable.pairs)
        evidence = winnable
    # Answers of equal tokens have equal rewards: no training can order them.
    unequal = evidence.where(lambda pair: encoded[pair.better].ids != encoded[pair.worse].ids)
    noted[EQUAL_TOKENS] += len(evidence.pairs) - len(unequal.pairs)
    if choice.is_held_out:
        return unequal
    weighted = unequal.where(lambda pair: pair.weight >= _LEAST_WEIGHT)
    noted[WEIGHTLESS] += len(unequal.pairs) - len(weighted.pairs)
    return weighted


def _encoded(
    cases: Iterable[Case], tokenizer: Any, rendering: Rendering, choice: EvidenceChoice, *, where: str
) -> Iterator[tuple[Case, "_Evidence", dict[int, Encoded]]]:
    """Yield each case with its evidence, and with the token ids of its used responses by position."""

    def answers(window: Sequence[Case], evidence: list[_Evidence]) -> Iterator[tuple[Case, Response]]:
        for case in window:
            evidence.append(choice.evidence_of(case, where=where))
            yield from ((case, case.responses[index]) for index in evidence[-1].responses())

    for window in batched(cases, _NUM_ENCODED):
        evidence: list[_Evidence] = []
        encoded = iter(encode_all(tokenizer, rendering, answers(window, evidence)))
        for case, of_case in zip(window, evidence, strict=True):
            yield case, of_case, {index: next(encoded) for index in of_case.responses()}


class _Evidence(NamedTuple):
    """The ordered pairs of a case, its ties and its ratings, by positions among all its responses."""

    pairs: tuple[IndexedPair, ...]
    ties: tuple[IndexedPair, ...]
    ratings: tuple[IndexedRating, ...] = ()

    def where(self, is_kept: Callable[[IndexedPair], bool]) -> "_Evidence":
        """Return the evidence with the pairs and ties that are kept."""
        return self._replace(pairs=tuple(filter(is_kept, self.pairs)), ties=tuple(filter(is_kept, self.ties)))

    def responses(self) -> list[int]:
        """Return the positions of all responses in a pair or a tie or with a rating, sorted."""
        ends = {end for pair in (*self.pairs, *self.ties) for end in pair[:2]}
        return sorted(ends | {rating.response for rating in self.ratings})


def _example(case: Case, evidence: _Evidence, rows: Mapping[int, tuple[int, ...]]) -> Example:
    """Return the example of this evidence, whose positions become those among the used responses."""
    used = evidence.responses()
    place = {index: position for position, index in enumerate(used)}

    def placed(pairs: tuple[IndexedPair, ...]) -> tuple[IndexedPair, ...]:
        return tuple(pair._replace(better=place[pair.better], worse=place[pair.worse]) for pair in pairs)

    return Example(
        rows=tuple(rows[index] for index in used),
        pairs=placed(evidence.pairs),
        ties=placed(evidence.ties),
        name=case.prompt.id,
        category=case.prompt.category[0] if case.prompt.category else UNCATEGORISED,
        language=case.prompt.language,
        prompt_names=prompt_names(case),
        ratings=tuple(rating._replace(response=place[rating.response]) for rating in evidence.ratings),
    )


def _refuse_length(too_long: list[str], rendering: Rendering, where: str) -> None:
    raise EvidenceError(
        f"{number_of(len(too_long), 'answer')} {verb_for(len(too_long), 'is', 'are')} longer than "
        f"{number_of(rendering.max_length, 'token')}, the first: {too_long[0]}",
        where=where,
        do=Advice(
            *("raise ", Remedy("max_length"), ", or say ", Remedy("over_length", "unscored")),
            " to leave them out, left or right to cut them",
        ),
    )


def _way_to_pairs(where: str, num_judged: int, dimensions: Counter[str]) -> Advice | None:
    """Return what cases without pairs can be trained on; ``dimensions`` are those of ratings for another loss."""
    ways: list[Advice] = []
    if dimensions:
        commonest = (Remedy("dimensions", dimensions.most_common(1)[0][0]),) if len(dimensions) > 1 else ()
        ways.append(Advice("train on their ratings: ", Remedy("loss", "mean-squared-error", commonest)))
    if num_judged:
        resolve = Command("resolve", (where,), (Remedy("out", "resolved"),))
        ways.append(Advice("rank the cases first: ", resolve, ", and train on resolved/cases.jsonl"))
    return joined(", or ", ways) if ways else None


def check_template(cases: Iterable[Case], tokenizer: Any, rendering: Rendering) -> None:
    """Raise ModelError for a template that writes a prompt differently for another answer.

    A pair would then compare prompts. Each of the first cases is rendered with its first two answers: their common
    beginning must hold every text of the prompt, apart from white space around it.
    """
    several = (case for case in cases if len({response.text for response in case.responses} - {None}) > 1)
    for case in islice(several, _NUM_CHECKED):
        by_text = {response.text: response for response in case.responses if response.text is not None}
        first, second = (render(tokenizer, rendering, case, response) for response in list(by_text.values())[:2])
        if first.stand_ins or second.stand_ins:
            continue  # texts that spell marks are written with stand-ins, which depend on the answer
        shared = commonprefix([first.text, second.text])  # noqa: RUF071 - compares characters
        changed = [message for message in case.prompt.messages if message.content.strip() not in shared]
        if changed:
            raise ModelError(
                f"the chat template changes the prompt with the answer: its {changed[0].role} text "
                f"{changed[0].content[:40]!r} differs before two answers",
                where=case.prompt.id,
                do=Advice(
                    "name a template that writes the prompt first, the same for every answer: ",
                    Remedy("chat_template", FILE),
                ),
            )
