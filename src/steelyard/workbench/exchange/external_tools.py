"""The tools by name, and an export as it is read: the manifest of the tasks, the answers, and what was no answer."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from steelyard.annotation.external_answers import ExternalAnswer
from steelyard.core.errors import Faults, FileError
from steelyard.io.lines import check_readable
from steelyard.workbench.exchange import argilla, label_studio, potato
from steelyard.workbench.exchange.external_forms import WRONG_ANSWERS, ReadingLog
from steelyard.workbench.exchange.external_tasks import MANIFEST, ReadExport, read_manifest

TOOLS = {tool.name: tool for tool in (argilla.TOOL, label_studio.TOOL, potato.TOOL)}


def read_export(paths: Sequence[Path], tasks: Path) -> ReadExport:
    """Read what a tool exported: files, or folders with such files. ``tasks``: the folder with the manifest.

    Raises FileError for a path without answers, and RecordError with all answers that are wrong.
    """
    place = tasks / MANIFEST if tasks.is_dir() else tasks
    check_readable(place)
    manifest = read_manifest(place.read_bytes(), str(place))
    tool, log = TOOLS.get(manifest.tool), ReadingLog(Counter(), Faults(WRONG_ANSWERS))
    if tool is None:
        raise FileError(f"has tasks for {manifest.tool!r}", where=str(place), allowed=", ".join(TOOLS))
    answers: list[ExternalAnswer] = []
    for path in paths:
        files = tool.export_files(path) if path.is_dir() else [path]
        if not files:
            raise FileError(f"has no export of {tool.name}", where=str(path), do="name the file that the tool exported")
        for file in files:
            check_readable(file)
            answers += tool.read(file, manifest.by_key, log)
    log.faults.check()
    return ReadExport(manifest, tuple(answers), dict(+log.not_answers))
