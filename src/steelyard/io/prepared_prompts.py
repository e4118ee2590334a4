"""The files of prepared prompts: the cases that stay, the rules that the others broke, and the ids that stay."""

from collections.abc import Callable, Iterable

import msgspec

from steelyard.core.types import Case
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import encode_case
from steelyard.io.kept import write_kept
from steelyard.io.run_folder import Result
from steelyard.prompts.masking import masked_case, num_changed
from steelyard.prompts.screening import ScreenedPrompt
from steelyard.prompts.selection import Selection, SelectionConfig

MANIFEST_FILE = "manifest.jsonl"
KEPT_FILE = "kept.json"


def write_prompts(
    result: Result,
    prompts: Iterable[tuple[Case, ScreenedPrompt]],
    selection: Selection,
    config: SelectionConfig,
    finished: Callable[[int, Case], Case],
) -> int:
    """Write the prompts that stay, masked, and the manifest, in the order of the file; return how many responses.

    An id with a dropped prompt in one language is left out of ``kept.json`` in all.
    """
    num_masked, reasons = 0, dict[str, list[str]]()
    with (
        atomic_write(result.path("cases.jsonl")) as case_file,
        atomic_write(result.path(MANIFEST_FILE)) as manifest,
    ):
        for place, (case, prompt) in enumerate(prompts):
            for row in selection.rows.get(place, ()):
                manifest.write(msgspec.json.encode(row) + b"\n")
            reasons.setdefault(case.prompt.id, []).extend(selection.reasons(place))
            if place not in selection.dropped:
                masked = masked_case(finished(place, case), prompt, config)
                case_file.write(encode_case(masked))
                num_masked += num_changed(case, masked)
    staying = [name for name, dropped in reasons.items() if not dropped]
    left_out = {name: tuple(dict.fromkeys(dropped)) for name, dropped in reasons.items() if dropped}
    write_kept(result.path(KEPT_FILE), staying, left_out)
    return num_masked
