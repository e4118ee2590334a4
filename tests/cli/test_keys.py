"""A key is written nowhere: not on the terminal, in a ledger, a record or a case file, whatever a server repeats."""

import sys
from urllib.parse import quote

import pytest

import tiny
from chat_server import echoing
from steelyard.cli import main as cli
from steelyard.io.cases import write_cases
from strategies import case

KEY = "sk-Live/abc+123=="
PASSWORD = "pa55w0rd"
CHAT = "--set model.chat.base_url=URL --set model.chat.model=m --set model.chat.secret=THE_KEY"
VERBS = {
    "judge": "judge cases.jsonl --allow-failed --set chat.base_url=URL --set chat.model=m --set chat.secret=THE_KEY "
    "--set chat.num_tries=1",
    "evaluate judged": f"evaluate --bench cases.jsonl --model llm_judge {CHAT} --set model.chat.num_tries=1",
    "score judged": f"score cases.jsonl --model llm_judge {CHAT} --set model.chat.num_tries=1",
    **{
        f"{verb} remote": f"{words} --model remote --set model.url=URL --set model.dialect=openrlhf "
        "--set model.tokenizer=TOKENIZER --set model.secret=THE_KEY --set model.num_tries=1"
        for verb, words in (("score", "score cases.jsonl"), ("evaluate", "evaluate --bench cases.jsonl"))
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    write_cases(folder / "cases.jsonl", [case(f"p{number}", "ab", ranking=(("a",), ("b",))) for number in range(3)])
    tiny.tokenizer().save_pretrained(folder / "TOKENIZER")
    return folder


def run(folder, out, words, url, monkeypatch, capfd):
    """The exit code and everything that was written: both streams and every file below the results."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("THE_KEY", KEY)
    monkeypatch.setattr(sys, "argv", ["steelyard", *words.replace("URL", url).split(), "--out", str(out)])
    try:
        cli.main()
        code = 0
    except SystemExit as stopped:
        code = stopped.code
    streams = "".join(capfd.readouterr()).encode()
    return code or 0, streams + b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())


@pytest.mark.parametrize("status", [200, 302, 400, 401, 404, 422, 500])
@pytest.mark.parametrize("verb", VERBS)
def test_api_key_echoed_by_server_is_never_written(folder, tmp_path, verb, status, monkeypatch, capfd):
    with echoing(status) as url:
        code, written = run(folder, tmp_path / "out", VERBS[verb], url, monkeypatch, capfd)
    assert code in (0, 2) or (code == 1 and b"failed" in written and b"a defect of ours" not in written), written[:2000]
    for spelling in (KEY, KEY.upper(), quote(KEY, safe=""), KEY[:8]):
        assert spelling.encode() not in written


@pytest.mark.parametrize("verb", VERBS)
def test_url_with_password_is_refused_and_never_written(folder, tmp_path, verb, monkeypatch, capfd):
    url = f"http://user:{PASSWORD}@127.0.0.1:9/v1"
    code, written = run(folder, tmp_path / "out", VERBS[verb], url, monkeypatch, capfd)
    assert code == 2
    assert b"addresses are recorded" in written
    assert PASSWORD.encode() not in written


def test_recipe_with_password_url_never_writes_it(folder, tmp_path, monkeypatch, capfd):
    stage = 'verb = "judge"\ncases = "made/cases.jsonl"\n'
    chat = f'config.chat.base_url = "http://user:{PASSWORD}@127.0.0.1:9/v1"\nconfig.chat.model = "m"\n'
    made = '[stages.made]\nverb = "simulate"\nconfig.num_prompts = 16\n'
    (tmp_path / "r.toml").write_text(f'about = "x"\n{made}\n[stages.judged]\n{stage}{chat}', encoding="utf-8")
    code, written = run(folder, tmp_path / "out", f"run {tmp_path / 'r.toml'}", "", monkeypatch, capfd)
    assert code == 2
    assert PASSWORD.encode() not in written
