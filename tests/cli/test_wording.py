"""Remedies in the words of the command line: the options of the verb that runs, else its settings."""

import pytest
from typer.main import get_command

from steelyard.cli.main import build_app
from steelyard.cli.wording import options_of
from steelyard.core.remedies import ANY, FILE, NUMBER, Command, Placeholder, Remedy


@pytest.fixture(scope="module")
def root():
    return get_command(build_app())


@pytest.mark.parametrize(
    ("verb", "part", "expected"),
    [
        ("train", Remedy("over_length", "left"), "--over-length left"),
        ("evaluate", Remedy("over_length", "left"), "--over-length left"),
        ("inspect", Remedy("chat_template", "plain"), "--set model.chat_template=plain"),
        ("train", Remedy("model.dtype", "float32"), "--dtype float32"),
        ("train", Remedy("model.divergence_steps", 0), "--set divergence_steps=0"),
        ("evaluate", Remedy("dtype", "float32"), "--set model.dtype=float32"),
        ("judge", Remedy("judge.max_tokens", NUMBER), "--set judge.max_tokens=N"),
        ("evaluate", Remedy("judge.max_tokens", NUMBER), "--set model.judge.max_tokens=N"),
        ("judge", Remedy("allow_even", value=True), "--set allow_even=true"),
        ("evaluate", Remedy("allow_even", value=True), "--set model.allow_even=true"),
        ("evaluate", Remedy("self_test", value=False), "--no-self-test"),
        ("evaluate", Remedy("self_test", value=True), "--set self_test=true"),
        ("evaluate", Remedy("allow_unscored", value=True), "--allow-unscored"),
        ("evaluate", Remedy("bench", Placeholder("KIND=FILE")), "--bench KIND=FILE"),
        ("resolve", Remedy("only", ("kind=llm", "judge=a b")), "--only kind=llm --only 'judge=a b'"),
        ("train", Remedy("trackers", [{"kind": "wandb"}]), """--set 'trackers=[{kind="wandb"}]'"""),
        ("convert", Remedy("from_kind", "trl"), "--from trl"),
        ("convert", Remedy("labels.0", "tie", (Remedy("labels.1", "left"),)), "--set labels.0=tie --set labels.1=left"),
        ("convert", Remedy("prompt_column", "Text A"), "--prompt-column 'Text A'"),
        ("judge", Remedy("chat.kind", "openai_compatible"), "--chat openai_compatible"),
        ("train", Remedy("learning_rate"), "--learning-rate"),
        ("train", Remedy("preflight", value=False), "--set preflight=false"),
        ("run", Remedy("over_length", "left"), "over_length=left"),
        ("view", Remedy("port", 0), "--port 0"),
        ("workbench import", Remedy("tasks.too_few", "skip"), "--set tasks.too_few=skip"),
        ("train", Command("resolve", ("a b.jsonl",), (Remedy("out", "resolved"),)),
         "steelyard resolve 'a b.jsonl' --out resolved"),
        ("train", Command("evaluate", (ANY,), (Remedy("max_length", NUMBER),)), "steelyard evaluate … --max-length N"),
        ("train", Command("inspect", (FILE,), (Remedy("id", "p"), Remedy("tokens", value=True))),
         "steelyard inspect FILE --id p --tokens"),
        ("view", Command("workbench add-person", ("A B",), (Remedy("role", "reviewer"),)),
         "steelyard workbench add-person 'A B' --role reviewer"),
    ],
)  # fmt: skip
def test_a_remedy_is_written_with_the_options_of_its_verb(verb, part, expected, root):
    command = root
    for word in verb.split():
        command = command.commands[word]
    assert options_of(command, root)(part) == expected
