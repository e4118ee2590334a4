"""Every command that we show to people is one that works: in the help of the verbs, in the README and in the tour."""

import contextlib
import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.main import get_command

import example_folder
from each_value import each
from steelyard.cli.main import build_app, verbs_by_name
from steelyard.cli.stage_verb import StageVerb
from steelyard.core.settings_help import read_settings

PAGES = ("README.md", "docs/tour.md")
VERBS = sorted(verbs_by_name())
TOO_LONG = "runs for minutes: `make demo` does it"
UNCERTAIN = "a model of random weights can certify no precision, and is refused, as it should be"
STOPS = {"--help", "--settings"}
"""Options that print and stop, whatever else is missing."""
FULL = {*STOPS, "--verbose", "--json"}
MOST_LINES = 12
"""A sentence that answers, ten lines, and the counts."""
MOST_LINES_OF_HELP = 60
"""In 80 columns, the least that terminals have. What needs more belongs in `--settings` and the pages."""
SERVER = "asks a language model on a server"
SERVES = "serves until Ctrl-C, on a port that others may hold: tests/cli/verbs/test_view.py serves on free ports"
WORKBENCH = "serves until Ctrl-C, or changes a workbench: tests/cli/verbs/test_workbench.py runs its commands"
NOT_RUN = {
    "steelyard demo": TOO_LONG,
    "steelyard demo --out demo": TOO_LONG,
    "steelyard demo --real": TOO_LONG,
    "steelyard demo --real --out demo-real": TOO_LONG,
    "steelyard run demo --out demo --from model --set model.epochs=8": TOO_LONG,
    **{
        f"steelyard supervise llm.jsonl --model {names} --calibration-cases held_out.jsonl"
        " --min-precision 0.9": UNCERTAIN
        for names in ("my-rm --out calibrated", "model --out supervised")
    },
    "steelyard translate bench.jsonl --to zh-Hans,de,ar --with openai_compatible --base-url http://localhost:8000/v1"
    " --chat-model Qwen2.5-72B-Instruct --out translated": SERVER,
    "steelyard doctor": "its exit code is the machine's: tests/cli/verbs/test_installation.py runs it",
}


def reason_against(command):
    """Why a command is parsed, but not run; null for those that run."""
    by_verb = {"judge": SERVER, "view": SERVES, "workbench": WORKBENCH}
    return by_verb.get(command.split()[1]) or NOT_RUN.get(command)


def help_text(verb):
    return get_command(build_app()).commands[verb].help


def in_backticks(text):
    return [" ".join(found.split()) for found in re.findall(r"`(steelyard [^`]+)`", text)]


def in_page(name):
    """The commands of a page, in its blocks without what explains them, and in its sentences."""
    text = (example_folder.ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("steelyard ")]
    return [re.split(r"  +", line)[0] for line in lines] + in_backticks(re.sub(r"```.*?```", "", text, flags=re.DOTALL))


EXAMPLES = re.compile(r"^ *Example: `([^`]+)`$", re.MULTILINE)
IN_HELP = {one for verb in VERBS for one in in_backticks(help_text(verb))}
SHOWN = sorted(IN_HELP.union(*map(in_page, PAGES)))
WHOLE = [command for command in SHOWN if len(command.split()) > 2 or command.split()[1] in ("demo", "doctor")]


def parsed(command):
    """The values that the verb would get. A verb, an option or an argument that does not exist raises."""
    _, verb, *words = shlex.split(command)
    found = get_command(build_app()).commands[verb]
    if hasattr(found, "commands"):
        verb, *words = words
        found = found.commands[verb]
    with found.make_context(verb, words) as context:
        return context.params


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples") / "all"
    folder.mkdir()
    example_folder.fill(folder)
    return folder


def test_the_pages_and_the_helps_were_read():
    assert len(SHOWN) > 40
    assert "steelyard resolve cases.jsonl --out resolved" in SHOWN
    assert set(NOT_RUN) <= set(SHOWN)


@each("verb", VERBS)
def test_every_verb_s_help_has_an_example_of_itself(verb):
    examples = re.findall(r"^ *Example: `([^`]+)`$", help_text(verb), flags=re.MULTILINE)
    assert examples
    assert all(example.split()[:2] == ["steelyard", verb] for example in examples)


@each("command", SHOWN)
def test_every_verb_option_and_argument_exists(command):
    if command in WHOLE and not STOPS & set(command.split()):
        assert parsed(command)
    else:
        assert command.split()[1] in VERBS


def single_commands():
    """The words of every command: a verb, or a group and one of its verbs."""
    commands = get_command(build_app()).commands
    return [
        (verb, *inner)
        for verb in VERBS
        for inner in ([(name,) for name in getattr(commands[verb], "commands", ())] or [()])
    ]


@each("verb", VERBS)
def test_every_option_and_setting_that_a_help_names_exists(verb):
    command = get_command(build_app()).commands[verb]
    options = {name for parameter in command.params for name in parameter.opts}
    declared = verbs_by_name()[verb]
    settings = read_settings(declared.config[0]) if isinstance(declared, StageVerb) else ()
    named = [" ".join(text.split()) for text in re.findall(r"`(--[^`]+)`", command.help or "")]
    assert not [text for text in named if text.split()[0] not in options], f"options that {verb} does not have"
    keys = {key for text in named for key in re.findall(r"^--set (\w+)", text)}
    assert keys <= {setting.name for setting in settings}, f"settings that {verb} does not have"


@each("width", [80, 120])
@each("words", single_commands())
def test_the_examples_of_a_rendered_help_can_be_pasted(words, width):
    shown = example_folder.invoke([*words, "--help"], COLUMNS=str(width)).stdout.splitlines()
    command = get_command(build_app()).commands[words[0]]
    text = (command.commands[words[1]] if len(words) > 1 else command).help
    first = next(place for place, line in enumerate(shown) if line.startswith("steelyard "))
    block = shown[first : shown.index("", first)]
    assert all(len(line) <= width for line in block)
    commands = [" ".join(shlex.split(one)) for one in "\n".join(block).replace("\\\n", " ").split("\n") if one.strip()]
    assert commands == [" ".join(shlex.split(one)) for one in EXAMPLES.findall(text)]
    assert all(parsed(one) for one in "\n".join(block).replace("\\\n", " ").split("\n") if len(one.split()) > 2)


@each("words", [*single_commands(), ("workbench",)])
def test_a_help_has_at_most_sixty_lines(words):
    lines = example_folder.invoke([*words, "--help"], COLUMNS="80").stdout.splitlines()
    assert len(lines) <= MOST_LINES_OF_HELP
    assert max(map(len, lines)) <= 80


def test_the_help_of_run_names_every_recipe():
    names = sorted(path.stem for path in (Path(__file__).parents[2] / "recipes").glob("*.toml"))
    assert f"Steelyard: {', '.join(names)}." in " ".join(help_text("run").split())


def test_the_readme_shows_every_command_of_the_help():
    shown = {command.split()[1] for command in in_page("README.md")}
    assert shown == set(VERBS), "the README lists the commands of `steelyard --help`, each once or more"


def test_the_readme_has_at_most_a_thousand_words():
    assert len((example_folder.ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1000


def test_a_wrong_example_is_seen():
    with pytest.raises(Exception, match="No such option"):
        parsed("steelyard resolve cases.jsonl --out resolved --onyl kind=human")
    with pytest.raises(Exception, match="Missing parameter: out"):
        parsed("steelyard resolve cases.jsonl")
    with pytest.raises(KeyError):
        parsed("steelyard resolv cases.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in WHOLE if not reason_against(command)])
def test_every_example_that_takes_seconds_runs(command, filled, tmp_path):
    words = shlex.split(command)[1:]
    here = tmp_path / "here"
    shutil.copytree(filled, here)
    with contextlib.chdir(here):
        if "cheemsbench=human.jsonl" in words:
            shutil.copy("cheems_human.jsonl", "human.jsonl")
        if not STOPS & set(words):
            _make_room(parsed(command).get("out"))
        result = example_folder.done(*words)
    assert result.stdout.strip()
    if isinstance(verbs_by_name()[words[0]], StageVerb) and not FULL & set(words):
        assert len(result.stdout.splitlines()) <= MOST_LINES, result.stdout


def _make_room(out):
    if out is not None and Path(out).is_dir():
        shutil.rmtree(out)
    elif out is not None:
        Path(out).unlink(missing_ok=True)
