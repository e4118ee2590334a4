"""Find what a translation lost or changed: a case beside its translation, text by text, without any model.

`find_damage` runs the checks of `wording`, `characters`, `bench_lengths`, `numbers`, `negation` and `structure` on the
prompt and each response. The usual lengths come from the bench itself (`length_limits`), the languages of all texts
from one batch of identification (`target_languages`). Every check takes time that is linear in the length of the texts.
"""

from collections.abc import Iterator, Sequence

from steelyard.core.types import Case
from steelyard.translation.bench_lengths import (
    LengthLimits,
    check_end,
    check_length,
)
from steelyard.translation.characters import check_characters
from steelyard.translation.damage_kinds import DamageFinding
from steelyard.translation.items import is_of_subsets
from steelyard.translation.negation import check_negation
from steelyard.translation.numbers import check_numbers
from steelyard.translation.passages import PassagePair, passages, source_passages
from steelyard.translation.sentence_alignment import check_sentences
from steelyard.translation.structure import check_code, check_equal, check_options, check_structure, check_swapped
from steelyard.translation.wording import (
    TargetLanguage,
    check_empty,
    check_frame,
    check_language,
    check_leftovers,
    check_repeated,
    check_untranslated,
)


def find_damage(
    source: Case,
    target: Case,
    *,
    limits: LengthLimits,
    languages: Sequence[TargetLanguage | None] | None,
    prompt_only: Sequence[str] = (),
) -> tuple[DamageFinding, ...]:
    """Return the faults of a translation, in the order of its texts.

    ``limits`` are the usual lengths of the bench. ``languages`` has the language of each text of ``target``, the prompt
    first; null where none could be identified, for all texts without the extra ``multilingual``: scripts alone decide
    then. The responses of both cases have the same order. In the subsets ``prompt_only`` responses are code, also where
    they are prose about it: those that were left as they are have no fault.
    """
    findings: list[DamageFinding] = []
    before, after = ([each.id for each in case.responses] for case in (source, target))
    if before != after:
        findings.append(
            DamageFinding(kind="responses", place="responses", before=", ".join(before), after=", ".join(after))
        )
    pairs = [PassagePair(*each) for each in zip(source_passages(source), passages(target), strict=False)]
    identified = languages if languages is not None else [None] * len(pairs)
    is_left = is_of_subsets(source, prompt_only)
    for place, (pair, language) in enumerate(zip(pairs, identified, strict=False)):
        if not (is_left and place and pair.source.text == pair.target.text):
            findings += _check_text(pair, limits, language)
    answers = pairs[1:]
    if before == after and len(answers) > 1:
        findings += check_equal(answers)
        findings += check_swapped(answers, limits.between(answers[0]))
    return tuple(findings)


def _check_text(pair: PassagePair, limits: LengthLimits, language: TargetLanguage | None) -> Iterator[DamageFinding]:
    """Run the checks of one text. An empty one has no others, one in another language none of sentences."""
    usual = limits.between(pair)
    empty = list(check_empty(pair))
    yield from empty
    if empty:
        return
    wrong = list(check_language(pair, language))
    yield from wrong
    yield from check_code(pair)
    yield from check_structure(pair)
    yield from check_options(pair)
    yield from check_leftovers(pair)
    yield from check_frame(pair)
    yield from check_characters(pair)
    yield from check_repeated(pair)
    yield from check_numbers(pair)
    yield from check_length(pair, usual)
    yield from check_end(pair, usual)
    # A text of which a part was left can be taken for one of the source's language: the words show which part it is.
    yield from check_untranslated(pair)
    if not wrong:
        yield from check_sentences(pair, usual)
        yield from check_negation(pair, usual)
