"""A verb that runs one stage, made from its declaration (`steelyard.io.verbs`).

It has ``--set``, ``--config``, ``--settings``, ``--force``, ``--verbose`` and ``--json``.
"""

import importlib
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.cli.options import (
    Values,
    add_setting,
    general_parameters,
    input_parameter,
    merge_settings,
    setting_parameter,
)
from steelyard.cli.output import counts_line, echo_record, print_lines, run_answer, step_line
from steelyard.core.config import parse_settings, resolve_config
from steelyard.core.errors import ConfigError
from steelyard.core.settings_help import read_settings
from steelyard.core.types import Run
from steelyard.io.lines import check_readable, read_toml, toml_places
from steelyard.io.progress import log_details
from steelyard.io.verbs import Argument, CaseFile, SettingOption, Verb, paragraphs, run_verb, verb_parameters

_IN_PYTHON = ("Raises ", ">>>")
"""Beginnings of the paragraphs of a docstring that are about Python."""


class StageVerb(NamedTuple):
    """The command of a verb that is declared beside its stage, a module of ``steelyard.stages``."""

    stage: str
    verb: Verb

    @property
    def name(self) -> str:
        """The verb as it is typed."""
        return self.stage.replace("_", "-")

    @property
    def config(self) -> tuple[str, str]:
        """The module and the name of the Config that ``--settings`` prints."""
        return f"steelyard.stages.{self.stage}", "Config"

    @property
    def about(self) -> str:
        """The text of the help: the docstring of the stage's function, with settings as options."""
        shown = [text for text in paragraphs(self.stage) if not text.startswith(_IN_PYTHON)]
        return re.sub(r"``(\w+)(?:=(\S+))?``", self._option_text, "\n\n".join(shown))

    def _option_text(self, match: re.Match[str]) -> str:
        """Return a setting of the docstring, such as ``min_margin`` or ``policy="cycles"``, as it is typed."""
        name, value = match[1], (match[2] or "").strip("[]\"'").replace('\\"', "").replace(",", "")
        option = next(
            (part.option for part in self.verb.parts if part.name == name and not isinstance(part, Argument)), None
        )
        if option is None and name == "config":
            option = "--config"
        if option is None:
            return f"`--set {name}={value}`" if value else f"`--set {name}=`"
        return f"`{option} {value}`" if value else f"`{option}`"

    def function(self) -> Callable[..., None]:
        """Return a function with the verb's parameters, as Typer reads them."""
        module = self.config[0]
        declared = verb_parameters(self.stage)
        parameters = [
            setting_parameter(part, module)
            if isinstance(part, SettingOption)
            else input_parameter(part, declared[part.name])
            for part in self.verb.parts
        ]
        parameters += general_parameters(has_settings=bool(read_settings(module)))

        def function(**values: Any) -> None:
            with process_group() if self.verb.is_distributed else nullcontext():
                self._run(values)

        function.__signature__ = inspect.Signature(parameters)  # pyrefly: ignore[missing-attribute] - unknown to the stubs
        function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return function

    def _run(self, values: Values) -> None:
        inputs = {
            part.name: values[part.name]
            for part in self.verb.parts
            if not isinstance(part, SettingOption) and values[part.name] is not None
        }
        settings = self._settings(values)
        stage = importlib.import_module(self.config[0])
        if self.verb.prepare is not None:
            getattr(stage, self.verb.prepare)(inputs, settings)
        with self._places(values):
            config = resolve_config(stage.Config, settings, where=self.stage)
        # Before torch is imported: a name that is wrong is answered at once.
        declared = verb_parameters(self.stage)
        for name, value in inputs.items():
            if isinstance(value, Path) and declared[name].type == CaseFile:
                check_readable(value)
        is_verbose = bool(values["verbose"])
        with log_details(is_shown=is_verbose):
            result = run_verb(stage, self.verb, inputs, config, force=bool(values["force"]))
        if values["as_json"]:
            echo_record(result if isinstance(result, Run) else result._asdict())
            return
        from steelyard.views.view import view_of

        out, view = inputs.get("out", _NOWHERE), view_of(self.stage)
        if not isinstance(result, Run):
            assert view is not None, f"{self.stage} has a result without a record, which no view shows"
            print_lines(view.unrecorded(result, out))
            return
        more = [*_finding_lines(result), counts_line(result)]
        if view is not None and view.next_step is not None and out != _NOWHERE:
            more.append(step_line(view.next_step(result, out)))
        print_lines(run_answer(result, out, is_verbose=is_verbose, num_more=len(more)))
        print_lines(more)

    def _settings(self, values: Values) -> Values:
        """Return the settings of the file, those of ``--set`` over them, and those of options over both."""
        settings: Values = {}
        if (path := values.get("config")) is not None:
            settings = read_toml(path)
        settings = merge_settings(settings, parse_settings(values.get("settings") or ()))
        for part in self.verb.parts:
            if isinstance(part, SettingOption) and values[part.parameter] not in (None, []):
                add_setting(settings, part, values[part.parameter], self.config[0])
        return settings

    @contextmanager
    def _places(self, values: Values) -> Iterator[None]:
        """Give a ConfigError about a setting of the file its place there; one of an option keeps the verb as place."""
        try:
            yield
        except ConfigError as error:
            path, key = values.get("config"), error.key
            if path is None or key is None or _holds(parse_settings(values.get("settings") or ()), key):
                raise
            if not _holds(read_toml(path), key):
                raise
            with toml_places(path):
                raise error.at(str(path)) from error


def _holds(settings: Any, key: str) -> bool:
    """Return whether nested settings have a value for a dotted key."""
    for name in key.split("."):
        if not isinstance(settings, dict) or name not in settings:
            return False
        settings = settings[name]
    return True


def process_group() -> AbstractContextManager[Any]:
    """Join the processes of one training: only the first prints. A process alone has nothing to join."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return nullcontext()  # without torch: a wrong setting is refused at once
    from steelyard.training import distributed

    return distributed.process_group()


def _finding_lines(run: Run) -> Iterable[str]:
    """Return a line for each finding of the checks of the input."""
    if not run.findings:
        return ()
    from steelyard.report.findings import finding_lines

    return finding_lines(run.findings)


_NOWHERE = Path()
"""Placeholder for --out in the answer of a verb that needs none."""
