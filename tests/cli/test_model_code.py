"""Code that lies in a model's folder never runs, whatever verb loads the folder and whatever stands on stdin."""

import ast
import io
import json
import sys

import pytest

import tiny
from package_source import sources
from steelyard.cli import main as cli
from steelyard.io.cases import write_cases
from strategies import case, judgment

MODEL_CLASSES = ("AutoModel", "AutoModelForCausalLM", "AutoModelForSequenceClassification")


def write_hostile(folder, marker, *, model_type):
    """A whole model of ours whose files name Python code for every class; the code writes the marker."""
    tiny.save_base(folder)
    code = f"open({str(marker)!r}, 'a').write('ran')\nclass Evil:\n    pass\n"
    for name in ("configuration_evil", "modeling_evil", "tokenization_evil", "custom_generate/generate"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(code)
    model_map = dict.fromkeys(MODEL_CLASSES, "modeling_evil.Evil")
    own_map = model_map | {"AutoConfig": "configuration_evil.Evil"}
    update(folder / "config.json", model_type=model_type, auto_map=own_map, architectures=["Evil"])
    if model_type == "evil":
        map_of_tokenizer = {"AutoTokenizer": ["tokenization_evil.Evil", "tokenization_evil.Evil"]}
        update(folder / "tokenizer_config.json", tokenizer_class="Evil", auto_map=map_of_tokenizer)
    return folder


def update(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def write_inputs(folder):
    """Cases with verdicts of a person and of a language model."""
    verdicts = (judgment("a>b", "ann"), judgment("a>b", "gpt", kind="llm"))
    write_cases(
        folder / "cases.jsonl",
        [case(f"p{number}", "ab", verdicts, ranking=(("a",), ("b",)), text=f"Why {number}?") for number in range(4)],
    )


LOADS = {
    "score": "score cases.jsonl --model ./MODEL",
    "evaluate": "evaluate --bench cases.jsonl --model ./MODEL",
    "supervise": "supervise cases.jsonl --model ./MODEL",
    "train": "train cases.jsonl --model ./MODEL",
    "policy": "train cases.jsonl --model ./MODEL --set kind=implicit",
    "inspect": "inspect cases.jsonl --id p0 --model ./MODEL --tokens",
    "debias": "debias cases.jsonl --tokenizer ./MODEL",
    "judge": "judge cases.jsonl --chat local --set chat.path=MODEL",
    "llm_judge": "score cases.jsonl --model llm_judge --set model.chat.kind=local --set model.chat.path=MODEL",
    "features": "score cases.jsonl --model features --set model.path=MODEL --set model.train=cases.jsonl",
    "implicit": "score cases.jsonl --model implicit --set model.path=MODEL",
    "reference": "score cases.jsonl --model implicit --set model.path=GOOD --set model.reference=MODEL",
    "adapter": "score cases.jsonl --model ./ADAPTER",
    "remote": "score cases.jsonl --model remote --set model.dialect=sglang --set model.tokenizer=MODEL "
    "--set model.url=http://127.0.0.1:9",
    **{
        kind: f"score cases.jsonl --model {kind} --set model.path=MODEL"
        for kind in ("armorm", "cheemsrm", "eurus_rm", "grm", "nemotron_reward", "qrm", "urm")
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    write_inputs(folder)
    tiny.save_base(folder / "GOOD")
    for name, model_type in (("MODEL", "evil"), ("DISGUISED", "qwen2")):
        (folder / name).mkdir()
        write_hostile(folder / name, folder / "marker", model_type=model_type)
    (folder / "ADAPTER").mkdir()
    settings = {"peft_type": "LORA", "base_model_name_or_path": str(folder / "MODEL"), "auto_mapping": {"x": "evil"}}
    (folder / "ADAPTER" / "adapter_config.json").write_text(json.dumps(settings))
    tiny.tokenizer().save_pretrained(folder / "ADAPTER")
    return folder


def run(folder, words, monkeypatch, capsys):
    """The exit code and what was written, with a yes on stdin for whoever asks."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    out = [] if words.startswith("inspect") else ["--out", "out", "--force"]
    monkeypatch.setattr(sys, "argv", ["steelyard", *words.split(), *out])
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 20))
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not (folder / "marker").exists(), words
    return stopped.value.code, "".join(capsys.readouterr())


@pytest.mark.parametrize("verb", LOADS)
def test_model_with_custom_code_is_refused_whatever_stdin_says(folder, verb, monkeypatch, capsys):
    code, written = run(folder, LOADS[verb], monkeypatch, capsys)
    assert code == 2, written
    assert "MODEL: needs Python code that comes with it, and such code is never run" in written


@pytest.mark.parametrize(
    ("verb", "code", "sign_of_loading"),
    [
        ("score", 2, "has no trained reward head"),
        ("judge", 1, "8 of 8 requests failed (too_long 8)"),
        ("train", 0, "trained at"),
        ("debias", 0, "written: out/cases.jsonl"),
    ],
)
def test_known_architecture_loads_without_its_custom_code(folder, verb, code, sign_of_loading, monkeypatch, capsys):
    ended, written = run(folder, LOADS[verb].replace("MODEL", "DISGUISED"), monkeypatch, capsys)
    assert (ended, sign_of_loading in written) == (code, True), written


def test_config_with_a_kernel_to_download_is_refused(tmp_path, monkeypatch, capsys):
    write_inputs(tmp_path)
    tiny.save_classifier(tmp_path / "MODEL")
    update(tmp_path / "MODEL" / "config.json", attn_implementation="evil/kernel")
    code, written = run(tmp_path, LOADS["score"], monkeypatch, capsys)
    assert code == 2
    assert "names code to be downloaded and run (attn_implementation: 'evil/kernel')" in written


def test_loaders_are_called_only_where_custom_code_is_forbidden():
    names = ("from_pretrained", "load_from_hub", "trust_remote_code")
    loading = [source for source in sources() if any(name in line for name in names for line in source.lines)]
    calls = [
        (source.module, node)
        for source in loading
        for node in source.nodes
        if isinstance(node, ast.Attribute) and node.attr in names
    ]
    assert [module for module, _ in calls] == ["steelyard.networks.pretrained"]
    given = [
        keyword.value.value
        for source in loading
        for node in source.nodes
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "trust_remote_code" and isinstance(keyword.value, ast.Constant)
    ]
    assert given == [False]
