import json

from typer.testing import CliRunner

from chat_server import chatting
from steelyard.cli.main import build_app
from steelyard.core.types import Case, Message, Prompt
from steelyard.io.cases import write_cases

TEXTS = [
    "Could you explain to me how a heat pump works in winter?",
    "Could you explain to me how a heat pump works in winter??",
    "你能给我解释一下热泵在冬天是怎么工作的吗？",
    "请写信到 li.wei@corp.cn 告诉我结果，谢谢。",
    "What is the capital of Mongolia, and how many people live there?",
]


def run(*words):
    return CliRunner().invoke(build_app(), ["prompts", *words], catch_exceptions=False)


def write_raw(name="raw.jsonl", texts=TEXTS):
    prompts = [Prompt(id=f"p{n}", messages=(Message(role="user", content=text),)) for n, text in enumerate(texts)]
    write_cases(name, [Case(prompt=prompt, responses=()) for prompt in prompts])


def test_the_dry_run_shows_examples_and_the_run_writes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_raw()
    shown = run("raw.jsonl", "--out", "prepared", "--dry-run").stdout
    assert shown.startswith("3 of 5 prompts would stay; nothing was written")
    assert "drop p3 [1]: 请写信到 [E_MAIL] 告诉我结果，谢谢。" in shown
    assert "drop p1 [" in shown
    assert not (tmp_path / "prepared").exists()
    assert json.loads(run("raw.jsonl", "--out", "prepared", "--dry-run", "--json").stdout)["summary"]["num_kept"] == 3
    result = run("raw.jsonl", "--out", "prepared")
    assert result.stdout.startswith("3 of 5 prompts stay (60.0%).")
    (following,) = [line for line in result.stdout.splitlines() if line.startswith("next: ")]
    words = following.removeprefix("next: steelyard ").partition("  #")[0].split()
    assert CliRunner().invoke(build_app(), words, catch_exceptions=False).exit_code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<bdi>5</bdi></b> prompts stay (<b><bdi>60.0%</bdi></b>)" in page
    assert "近似重复" in page
    assert "li.wei" not in page


def test_options_reach_the_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_raw()
    write_raw("bench.jsonl", TEXTS[4:])
    (tmp_path / "shares.toml").write_text("[language]\nzh = 0.5\nen = 0.5\n", encoding="utf-8")
    words = ("--near-duplicates", "off", "--private-data", "e_mail=mask", "--shares", "shares.toml")
    result = run("raw.jsonl", "--out", "prepared", *words, "--against", "bench.jsonl", "--dry-run")
    assert "1 prompt overlaps with bench.jsonl, 1 with an equal first turn." in result.stdout
    record = json.loads(run("raw.jsonl", "--out", "prepared", *words, "--against", "bench.jsonl", "--json").stdout)
    assert record["config"]["private_data"] == {"e_mail": "mask"}
    assert [row["num_after"] for row in record["summary"]["shares"] if row["kind"] == "language"] == [2, 2]
    written = (tmp_path / "prepared" / "cases.jsonl").read_text(encoding="utf-8")
    assert "[E_MAIL]" in written


def test_categories_by_a_model_and_by_people_are_printed_and_on_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_raw(texts=TEXTS[:1] + TEXTS[2:3] + TEXTS[4:])
    people = [("p0", "knowledge"), ("p1", "知识"), ("p2", "mathematics")]
    labelled = [
        Prompt(id=name, messages=(Message(role="user", content=text),), category=(category,))
        for (name, category), text in zip(people, TEXTS[:1] + TEXTS[2:3] + TEXTS[4:], strict=True)
    ]
    write_cases("people.jsonl", [Case(prompt=prompt, responses=()) for prompt in labelled])
    with chatting("knowledge/technology") as server:
        words = ("--classify", f"base_url={server.url}", "--classify", "model=m", "--human", "people.jsonl")
        shown = run("raw.jsonl", "--out", "out", *words, "--dry-run").stdout
        assert "m: 3 requests; 3 more are equal to one of them\n" in shown
        assert not server.questions
        shown = run("raw.jsonl", "--out", "out", *words).stdout
    assert "m gave 3 of 3 prompts a category;" in shown
    assert "m and people agree on the first tier of 66.7% (" in shown
    assert CliRunner().invoke(build_app(), ["report", "out", "--out", "report.html"]).exit_code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for text in ("Categories by the model and by people", "模型与人工归类的一致性", "Confused categories", "66.7%"):
        assert text in page
    record = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    assert record["summary"]["classification"]["agreement"]["num_prompts"] == 3
    details = run("raw.jsonl", "--out", "out", *words, "--verbose").stdout
    assert "Categories" in details
    assert "mathematics" in details
