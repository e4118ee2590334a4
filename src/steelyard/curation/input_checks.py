"""Checks of cases before a number: pairs that no model can win, repeated prompts, and prompts with pictures."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from steelyard.core.text import conversation_form, normal_form, prompt_text, response_text
from steelyard.core.types import Case, InputFinding, Response

_MOST_EXAMPLES = 3
_PICTURE = "<image>"
_PICTURE_KEYS = ("image", "images", "videos")


class InputChecks:
    """Counts of the properties of cases that a reader of numbers on them should know; the counts of batches add up.

    A pair is unwinnable where both texts have one normal form, or none: its responses differ in nothing that a reader
    sees. ``pairs`` are triples: the position of the case, those of the better and of the worse response within it.
    """

    def __init__(self, cases: Sequence[Case] = (), pairs: Iterable[tuple[int, int, int]] = ()) -> None:
        self.num_cases, self.num_pairs = len(cases), 0
        self._prompts = [_digest(case) for case in cases]
        self._unwinnable: list[str] = []
        self._pictured = [case.prompt.id for case in cases if _has_picture(case)]
        forms: dict[tuple[int, int], str] = {}
        for number, better, worse in pairs:
            self.num_pairs += 1
            sides = [
                forms.setdefault((number, place), _form(cases[number].responses[place])) for place in (better, worse)
            ]
            if sides[0] == sides[1]:
                self._unwinnable.append(cases[number].prompt.id)

    def join(self, other: "InputChecks") -> None:
        """Add the counts of another batch."""
        self.num_cases += other.num_cases
        self.num_pairs += other.num_pairs
        self._prompts += other._prompts
        self._unwinnable += other._unwinnable
        self._pictured += other._pictured

    def findings(self) -> tuple[InputFinding, ...]:
        """Return a finding for each property that occurs."""
        prompts = [digest for digest in self._prompts if digest]
        numbers = {
            "unwinnable_pairs": (len(self._unwinnable), self.num_pairs, self._unwinnable),
            "repeated_prompts": (len(prompts) - len(set(prompts)), len(prompts), []),
            "pictures": (len(self._pictured), self.num_cases, self._pictured),
        }
        return tuple(
            InputFinding(check=check, count=count, total=total, examples=tuple(dict.fromkeys(names))[:_MOST_EXAMPLES])
            for check, (count, total, names) in numbers.items()
            if count
        )


def _form(response: Response) -> str:
    return normal_form(response_text(response))


def _digest(case: Case) -> bytes:
    """Return a digest of the prompt's identity in its language; empty for a prompt without text."""
    form = conversation_form(case.prompt.messages)
    if not form:
        return b""
    key = f"{case.prompt.language or ''}\x1f{form}"
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _has_picture(case: Case) -> bool:
    metas = (case.meta, case.prompt.meta or {})
    return _PICTURE in prompt_text(case) or any(meta.get(key) for meta in metas for key in _PICTURE_KEYS)
