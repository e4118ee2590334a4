"""Tables that are not UTF-8: read by their byte order mark, or by the encoding that the remedy names."""

import re
import shlex

import pytest

import steelyard as sy
from example_folder import invoke
from steelyard.core.errors import ConfigError, FileError
from steelyard.io.cases import read_cases
from steelyard.stages.convert import Config, convert

TABLES = {
    "gb18030": ("什么是杆秤？它是怎么用的？", "一种称重量的工具。", "我不知道这是什么。"),
    "big5": ("什麼是桿秤？它是怎麼用的？", "一種稱重量的工具。", "我不知道這是什麼。"),
    "cp932": ("秤とは何ですか。教えてください。", "重さを量る道具です。", "わかりません。"),
    "cp949": ("저울은 무엇입니까?", "무게를 재는 도구입니다.", "모르겠습니다."),
    "cp1256": ("ما هو القبان وكيف يستعمل؟", "أداة لقياس الوزن.", "لا أعرف."),
    "cp1251": ("Что такое безмен?", "Прибор для взвешивания.", "Не знаю."),
    "cp1252": ("Was heißt „Waage“ für Händler?", "Ein Gerät für das Wägen größerer Dinge.", "Keine schöne Antwort."),
}


def table(path, encoding, *, between=","):
    question, good, bad = TABLES[encoding]
    lines = [between.join(cells) for cells in (("question", "chosen", "rejected"), (question, good, bad))]
    path.write_bytes("\r\n".join(lines).encode(encoding) + b"\r\n")
    return path


def read(out):
    (case,) = read_cases(out)
    texts = {response.id: response.text for response in case.responses}
    return case.prompt.messages[0].content, *(texts[name] for (name,) in case.ranking)


@pytest.mark.parametrize("encoding", TABLES)
def test_the_remedy_for_a_table_of_another_encoding_works_when_pasted(tmp_path, encoding, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "t.csv", encoding)
    command = ["convert", "t.csv", "o.jsonl"]
    with pytest.raises(FileError, match=r"t\.csv:\d: byte \d+ is not UTF-8") as refused:
        raise invoke(command).exception
    assert not (tmp_path / "o.jsonl").exists()
    (remedy,) = re.findall(r"--set encoding=\S+", str(refused.value))
    done = invoke([*command, *shlex.split(remedy)])
    assert done.exit_code == 0, done.stderr
    assert read(tmp_path / "o.jsonl") == TABLES[encoding]


def test_the_remedy_in_python_names_the_argument(tmp_path):
    source = table(tmp_path / "t.csv", "gb18030")
    with pytest.raises(FileError, match=r'not UTF-8(.|\n)*encoding="GB18030"'):
        sy.convert(source)
    (case,) = sy.convert(source, encoding="gb18030").cases
    assert case.prompt.messages[0].content == TABLES["gb18030"][0]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_a_table_with_a_byte_order_mark_needs_no_setting(tmp_path, encoding):
    question, good, bad = TABLES["gb18030"]
    # Excel's "Unicode text" is UTF-16 with tabs.
    text = f"question\tchosen\trejected\r\n{question}\t{good}\t{bad}\r\n"
    (tmp_path / "t.tsv").write_bytes(text.encode(encoding))
    convert(tmp_path / "t.tsv", tmp_path / "o.jsonl")
    assert read(tmp_path / "o.jsonl") == TABLES["gb18030"]


def test_text_of_two_bytes_a_character_without_a_mark_names_its_encoding(tmp_path):
    # The low byte of U+4E00 is zero, as the high bytes of ASCII are.
    (tmp_path / "t.csv").write_bytes("question,chosen,rejected\r\nWas?,一,一二\r\n".encode("utf-16-be"))
    with pytest.raises(FileError, match=r"t\.csv: this is UTF-16BE(.|\n)*encoding=UTF-16BE"):
        convert(tmp_path / "t.csv", tmp_path / "o.jsonl")
    convert(tmp_path / "t.csv", tmp_path / "o.jsonl", Config(encoding="UTF-16BE"))
    assert read(tmp_path / "o.jsonl") == ("Was?", "一", "一二")


def test_a_wrong_encoding_is_refused_with_the_line_and_nothing_is_written(tmp_path):
    source = table(tmp_path / "t.csv", "cp1252")
    with pytest.raises(FileError, match=r"t\.csv:2: this is not utf-8"):
        convert(source, tmp_path / "o.jsonl", Config(encoding="utf-8"))
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv"}


@pytest.mark.parametrize("name", ["gbkk", "base64", "rot13", "", "utf 99", "a\0b"])
def test_an_encoding_that_does_not_exist_is_refused_before_a_file_is_read(tmp_path, name):
    with pytest.raises(ConfigError, match="encoding: no encoding of text is"):
        convert(tmp_path / "nothere.csv", tmp_path / "o.jsonl", Config(encoding=name))


def test_a_broken_byte_in_utf8_names_no_encoding(tmp_path):
    content = (
        '{"prompt": "什么是杆秤", "chosen": "工具", "rejected": "不知道"}\n'.encode() * 9 + b'{"prompt": "\xff"}\n'
    )
    (tmp_path / "r.jsonl").write_bytes(content)
    with pytest.raises(FileError, match=r"r\.jsonl:10: byte 13 is not UTF-8(.|\n)*the rest is UTF-8") as caught:
        convert(tmp_path / "r.jsonl", tmp_path / "o.jsonl")
    assert "encoding=" not in str(caught.value)


def test_a_case_file_of_another_encoding_becomes_utf8(tmp_path):
    convert(table(tmp_path / "t.csv", "gb18030"), tmp_path / "o.jsonl", Config(encoding="gb18030"))
    cases = (tmp_path / "o.jsonl").read_text(encoding="utf-8")
    (tmp_path / "gbk.jsonl").write_text(cases, encoding="gb18030")
    convert(tmp_path / "gbk.jsonl", tmp_path / "again.jsonl", Config(encoding="gb18030"))
    assert (tmp_path / "again.jsonl").read_text(encoding="utf-8") == cases
    (tmp_path / "wide.jsonl").write_text(cases, encoding="utf-16")
    assert list(read_cases(tmp_path / "wide.jsonl")) == list(read_cases(tmp_path / "o.jsonl"))
