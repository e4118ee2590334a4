"""Convert preference data into a case file, or a case file into another format.

Rows of pairs that share a prompt become one case; converted back they are the same rows, grouped by prompt. Fields
that a format cannot represent are counted and printed; nothing is dropped silently. `steelyard list formats` lists the
formats.

Example: `steelyard convert oasst.json cases.jsonl --language zh`

Example: `steelyard convert pandalm.json people.jsonl --part human`

Example: `steelyard convert cases.jsonl pairs.jsonl --to trl`

Example: `steelyard convert cases.jsonl inside.jsonl --to trl --set implicit=true`

Example: `steelyard convert rated.jsonl judged.jsonl --ratings-to-judgments`

Example: `steelyard convert mine.jsonl cases.jsonl --from openrlhf --set chosen_key=good --set rejected_key=bad`
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.completion import complete_format
from steelyard.cli.stage_verb import SettingOption, StageArgument, StageVerb, Values

if TYPE_CHECKING:
    from steelyard.stages.convert import Conversion


def prepare(inputs: Values, settings: Values) -> None:
    """Move settings that are not those of `convert` to the settings of the format."""
    from steelyard.stages.convert import Config

    settings["settings"] = {key: settings.pop(key) for key in list(settings) if key not in Config.__struct_fields__}


def lines(conversion: "Conversion", out: Path) -> Iterator[str]:
    """Yield the number of cases and rows, and what was derived or lost."""
    num_cases, num_rows = conversion.num_cases, conversion.num_rows
    kinds = f"{conversion.from_kind} to {conversion.to_kind}"
    yield f"{kinds}: {num_cases:,} cases, {conversion.num_written:,} rows in {out}"
    if num_rows > num_cases:
        yield f"  {num_rows:,} rows are {num_cases:,} prompts; --rows apart keeps each row a case"
    for title, counts in (("noted", conversion.noted), ("lost", conversion.lost)):
        for name, number in sorted(counts.items()):
            yield f"  {title}: {name} {number:,}"


command = StageVerb(
    "convert",
    (
        StageArgument("source", "A file, or a dataset saved to disk.", metavar="IN"),
        StageArgument("out", "The file to write: .jsonl, .parquet, or .json for others than cases."),
        SettingOption("from_kind", "--from", complete=complete_format),
        SettingOption("to_kind", "--to", complete=complete_format),
        SettingOption("language"),
        SettingOption("subset"),
        SettingOption("source"),
        SettingOption("part"),
        SettingOption("ratings_to_judgments"),
        SettingOption("rows"),
    ),
    lines,
    prepare,
)
