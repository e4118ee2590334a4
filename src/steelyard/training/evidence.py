"""The evidence that a training reads from its cases: pairs, ties or ratings, their findings, and what is logged."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from steelyard.core.errors import EvidenceError
from steelyard.core.languages import language_key
from steelyard.core.remedies import Advice, Command, Remedy
from steelyard.core.text import conversation_form, number_of, verb_for
from steelyard.core.types import Case, InputFinding
from steelyard.curation.input_checks import check_cases
from steelyard.curation.merge import num_rows_apart
from steelyard.io.progress import log
from steelyard.networks.ratings import check_ratings, rating_scale, scale_sentence
from steelyard.ranking.pairs import UNLISTED, pairs_of
from steelyard.training.config import Config
from steelyard.training.examples import EvidenceChoice, Examples
from steelyard.training.losses import LOSSES


def check_disjoint(train: Sequence[Case], held_out: Sequence[Case], *, where: str) -> None:
    """Raise EvidenceError where a held-out conversation, or a translation of it, is also in the training data.

    Items with one id in several languages are translations of each other, as `split` takes them.
    """
    trained = {conversation_form(case.prompt.messages) for case in train} - {""}
    languages: dict[str, set[str]] = {}
    for case in train:
        if case.prompt.language:
            languages.setdefault(case.prompt.id, set()).add(language_key(case.prompt.language))
    shared, num_translations = list[str](), 0
    for prompt in (case.prompt for case in held_out):
        is_equal = conversation_form(prompt.messages) in trained
        others = languages.get(prompt.id, set()) - {language_key(prompt.language)} if prompt.language else ()
        if is_equal or others:
            shared.append(prompt.id)
            num_translations += not is_equal
    if shared:
        part = f" ({num_translations} of them by their id, in another language)" if num_translations else ""
        raise EvidenceError(
            f"{len(shared)} of {len(held_out)} held-out prompts are in the training data{part}, the first: "
            f"{shared[0]!r}",
            where=where,
            do=Advice("split by prompt (", Command("split"), "), or say ", Remedy("allow_overlap", value=True)),
        )


def choose_evidence(
    config: Config, train_cases: Sequence[Case], held_out_cases: Sequence[Case], *, cases: Path, held_out: Path | None
) -> tuple[EvidenceChoice, EvidenceChoice]:
    """Return what is read from the training cases, and what from the held-out ones; log the scale of ratings.

    Raises EvidenceError for ratings that cannot be trained on.
    """
    loss = LOSSES[config.loss]
    if loss.rating_link is None:
        return EvidenceChoice(config.pairs, loss.reads_ties), EvidenceChoice(config.pairs, is_held_out=True)
    scale = rating_scale(
        train_cases, config.dimensions, loss.rating_link, center=config.rating_center, where=str(cases)
    )
    check_ratings(held_out_cases, scale, where=str(held_out))
    log(scale_sentence(train_cases, scale))
    of_train = EvidenceChoice(config.pairs, ratings=scale, pair_weight=config.pair_weight)
    return of_train, EvidenceChoice(config.pairs, ratings=scale, is_held_out=True)


def case_findings(
    train_cases: Sequence[Case],
    held_out_cases: Sequence[Case],
    held_out: Path | None,
    examples: Examples,
    config: Config,
) -> tuple[InputFinding, ...]:
    """Return the findings of the cases, those of the held-out ones with the name of their file."""
    reads_ties = LOSSES[config.loss].reads_ties
    choice = partial(pairs_of, choice=config.pairs)
    check = partial(check_cases, pairs=(lambda case: ()) if config.reads_ratings and not config.pair_weight else choice)
    findings = list(check(train_cases, reads_ties=reads_ties or config.reads_ratings))
    if reads_ties and not any(example.ties for example in examples.examples):
        details = {"loss": config.loss, "remedy": str(Remedy("loss", "bradley-terry"))}
        findings.append(InputFinding(check="no_ties", count=0, total=examples.num_pairs, details=details))
    if held_out is not None:
        others = check_cases(held_out_cases, choice, reads_ties=True)
        findings += (replace(finding, details={**finding.details, "file": held_out.name}) for finding in others)
    return tuple(findings)


def log_lengths(train: Examples, held_out: Examples | None) -> None:
    """Log the answers over the limit of length, where there are any."""
    for name, examples in (("", train), ("held out: ", held_out)):
        for sentence in examples.length.sentences() if examples else ():
            log(f"{name}{sentence}")


def log_pairs(examples: Examples, cases: Sequence[Case], config: Config, *, where: Path) -> None:
    """Log, before training, rows that could be one case, and pairs that curation left out."""
    num_rows, num_prompts = num_rows_apart(cases)
    if num_rows:
        examples.noted["rows of one prompt that are cases of their own"] += num_rows
        log(
            Advice(
                f"{num_rows:,} of {number_of(len(cases), 'case')} {verb_for(num_rows, 'is', 'are')} rows of only "
                f"{number_of(num_prompts, 'prompt')}; as one case a prompt they "
                f"train several times faster: ",
                Command("convert", (str(where), "joined.jsonl"), (Remedy("rows", "joined"),)),
            )
        )
    if added := examples.noted[UNLISTED]:
        log(
            f"pairs={config.pairs} adds {number_of(added, 'pair')} that curation left out; without it the listed "
            "ones are used"
        )


def evidence_counts(examples: Examples) -> str:
    """Return the numbers of prompts, responses, and evidence of each kind that the examples have."""
    counts = {"prompt": len(examples.examples), "response": examples.num_responses, "pair": examples.num_pairs}
    counts["rating"] = examples.num_ratings
    return ", ".join(number_of(number, noun) for noun, number in counts.items() if number)
