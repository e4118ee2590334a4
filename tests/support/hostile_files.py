"""Broken, absurd and harmful files made from good ones, for the hostile suite of every verb."""

import gzip
import json
import struct
from collections.abc import Callable
from pathlib import Path

PROMPT = {"id": "p1", "messages": [{"role": "user", "content": "What is it?"}], "category": ["a"], "language": "en"}
CASE = {
    "prompt": PROMPT,
    "responses": [{"id": "a", "text": "A steelyard."}, {"id": "b", "text": "No."}, {"id": "c", "text": "A scale?"}],
    "judgments": [
        {"left": "a", "right": "b", "verdict": "left", "judge": "ann", "kind": "human"},
        {"left": "a", "right": "b", "verdict": "left", "judge": "gpt-4", "kind": "llm"},
        {"left": "c", "right": "b", "verdict": "left", "judge": "gpt-4", "kind": "llm"},
    ],
    "ranking": [["a"], ["c"], ["b"]],
}
SHORT_ONE_BEST = {
    "judgments": [
        {"left": "b", "right": "a", "verdict": "left", "judge": "ann", "kind": "human"},
        {"left": "a", "right": "b", "verdict": "right", "judge": "gpt-4", "kind": "llm"},
        {"left": "c", "right": "b", "verdict": "right", "judge": "gpt-4", "kind": "llm"},
    ],
    "ranking": [["b"], ["c"], ["a"]],
}


def case(**changes):
    """Return a case whose key no other case of the good file has: it reaches the checks behind that of the ids."""
    return {**CASE, "prompt": {**PROMPT, "id": "changed"}, **changes}


def cases(number=24):
    """Return cases that every verb accepts: each prompt in two languages, and no length that is always best."""
    return [_case(index) for index in range(number)]


def _case(index):
    thing = ("steelyard", "balance", "bell", "mill", "loom", "plough", "lathe", "anvil")[index // 2 % 8] + str(
        index // 2
    )
    question = f"What is a {thing}?" if index % 2 == 0 else f"{thing} 是什么东西，用来做什么？"
    prompt = {
        **PROMPT, "id": f"p{index // 2}", "messages": [{"role": "user", "content": question}],
        "category": ["ab"[index // 4 % 2]], "language": ("en", "zh")[index % 2],
    }  # fmt: skip
    return case(prompt=prompt, **({} if index % 4 < 2 else SHORT_ONE_BEST))


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


GOOD = lines(cases())
OTHER_LABELS = lines([{**one, "ranking": one["ranking"][::-1], "judgments": [], "pairs": None} for one in cases()])
"""The good cases with the opposite rankings, by which a judge differs from people."""
VALUES = {
    "null": None, "number": 3, "text": "x", "list": [], "object": {}, "true": True, "huge": 10**400, "nested": [[[[]]]],
}  # fmt: skip
FIELDS = ("prompt", "responses", "judgments", "ranking", "pairs", "ratings", "meta", "format")


TEXTS = {
    "nul": "a\x00b", "escape": "\x1b[2J\x1b]0;x\x07", "bidi": "\u202egnp.exe\u2066", "surrogate": "\ud800",
    "combining": "a" + "\u0301" * 5000, "zero width": "\u200b" * 1000, "long word": "x" * 2**20, "empty": "",
    "spaces": " \t\u3000", "html": "<script>alert(1)</script>", "markdown": "[a](javascript:b)|`",
    "role mark": "<|im_start|>system\n", "jinja": "{{ 7*7 }}{% for x in y %}", "emoji": "👩‍👩‍👧‍👦" * 200,
    "path": "../../etc/passwd", "formula": "=1+cmd|' /C calc'!A0", "newlines": "\n\r\u2028\x85" * 50,
}  # fmt: skip


def field_variants():
    """Yield a case with each field replaced by a value of every other type."""
    return {f"{field} is {name}": lines([*cases(), case(**{field: value})]) for field in FIELDS for name, value in
            VALUES.items()}  # fmt: skip


def content_variants():
    found = {f"text is {name}": lines([*cases(), case(responses=[{"id": "a", "text": text}, CASE["responses"][1],
             CASE["responses"][2]])]) for name, text in TEXTS.items()}  # fmt: skip
    found |= {f"id is {name}": lines([*cases(), case(prompt={**PROMPT, "id": text})]) for name, text in TEXTS.items()}
    found |= {
        f"category is {name}": lines([*cases(), case(prompt={**PROMPT, "category": [text]})])
        for name, text in TEXTS.items()
    }
    return found


def structure_variants():
    judged = CASE["judgments"][0]
    return {
        "a response twice": lines([*cases(), case(responses=[CASE["responses"][0]] * 2)]),
        "a prompt twice": lines([*cases(), cases()[0]]),
        "no responses": lines([*cases(), case(responses=[], judgments=[], ranking=None)]),
        "one response": lines([*cases(), case(responses=CASE["responses"][:1], judgments=[], ranking=None)]),
        "a judge of nobody": lines([*cases(), case(judgments=[{**judged, "left": "zz"}])]),
        "against itself": lines([*cases(), case(judgments=[{**judged, "right": "a"}])]),
        "an unknown verdict": lines([*cases(), case(judgments=[{**judged, "verdict": "maybe"}])]),
        "an empty tier": lines([*cases(), case(ranking=[["a"], [], ["b"]])]),
        "ranked twice": lines([*cases(), case(ranking=[["a"], ["a"]])]),
        "ranks nobody": lines([*cases(), case(ranking=[["zz"]])]),
        "a negative weight": lines([*cases(), case(pairs=[{"better": "a", "worse": "b", "weight": -1}])]),
        "an endless weight": GOOD + b'{"prompt":{"id":"x","messages":[]},"responses":[],"pairs":[{"weight":1e999}]}\n',
        "not a number": GOOD + b'{"prompt": NaN}\n',
        "text and messages": lines([*cases(), case(responses=[{"id": "a", "text": "x", "messages": []}])]),
        "a key twice": GOOD.replace(b'"responses"', b'"prompt": {}, "responses"'),
        "an unknown key": lines([*cases(), case(unknown=1)]),
        "format 2": lines([*cases(), case(format=2)]),
        "a thousand responses": lines(
            [*cases(), case(responses=[{"id": str(n), "text": "x"} for n in range(1000)], judgments=[], ranking=None)]
        ),
    }


def _broken_bytes(good: bytes) -> dict[str, bytes]:
    """Return invalid bytes, and other valid encodings of a good file."""
    deep = b"[" * 100_000
    return {
        "empty": b"", "blank": b"\n \n\t\n", "a byte order mark": b"\xef\xbb\xbf" + good, "utf-16": good.decode().encode("utf-16"),
        "latin-1": good + b'{"prompt": "\xe9"}\n', "gzip": gzip.compress(good, mtime=0), "nul bytes": b"\0" * 4096,
        "cut off": good[:-20], "cut in a character": good + '{"prompt": "好"}'.encode()[:-4], "random": bytes(range(256)) * 16,
        "crlf": good.replace(b"\n", b"\r\n"), "cr alone": good.replace(b"\n", b"\r"), "no last newline": good.rstrip(b"\n"),
        "deep lists": b'{"prompt": ' + deep + b"}\n", "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"\n",
        "an array": b"[" + b",".join(good.splitlines()) + b"]\n", "a broken array": b"[" + good, "a number": b"3\n", "a text": b'"x"\n',
        "null line": b"null\n", "html page": b"<!doctype html><html></html>\n", "lfs pointer": b"version https://git-lfs.github.com/spec/v1\n",
        "zip": b"PK\x03\x04" + b"\0" * 100, "parquet by content": b"PAR1" + b"\0" * 100 + b"PAR1", "a huge number": b'{"prompt": ' + b"9" * 5000 + b"}\n",
        "empty lists": b'{"prompt": [' + b"[]," * 10**6 + b"[]]}\n", "a long line": b'{"prompt": "' + b"x" * (65 * 2**20) + b'"}\n',
    }  # fmt: skip


def case_files() -> dict[str, bytes]:
    """Return case files by their defect."""
    return {"good": GOOD} | _broken_bytes(GOOD) | structure_variants() | field_variants() | content_variants()


def score_files() -> dict[str, bytes]:
    """Return score files for the good cases, by their defect."""
    rows = [
        {"prompt": one["prompt"]["id"], "language": one["prompt"]["language"], "scores": {"a": 1.0, "b": 0.5, "c": 0}}
        for one in cases()
    ]
    good, first = lines(rows), rows[0]
    made = {"good": good, "a row is absent": lines(rows[1:]), "a row twice": lines([*rows, first])}
    made |= {f"{field} is {name}": lines([{**first, field: value}, *rows[1:]]) for field in ("prompt", "language",
             "scores", "unscored", "cut") for name, value in VALUES.items()}  # fmt: skip
    made |= {
        f"a score is {name}": lines([{**first, "scores": {**first["scores"], "a": value}}, *rows[1:]])
        for name, value in VALUES.items()
    }
    made |= {
        f"a score is {number}": good.replace(b"1.0", number.encode(), 1) for number in ("NaN", "1e999", "-0", "1e308")
    }
    made |= {f"an id is {name}": lines([{**first, "scores": {text: 1.0}}, *rows[1:]]) for name, text in TEXTS.items()}
    return made | _broken_bytes(good)


def recordings() -> dict[str, bytes]:
    """Return files of recorded replies, by their defect."""
    texts = {
        "good": "[[A]]",
        **TEXTS,
        "many brackets": "[[" + " " * 10**5,
        "both": "[[A]] [[B]]",
        "numbers": "9" * 5000,
    }
    made = {name: lines([{"text": text}]) for name, text in texts.items()}
    fields = ("text", "question", "contains", "failure", "detail", "first_token", "prompt_tokens", "reply_tokens")
    made |= {f"{field} is {name}": lines([{"text": "[[A]]", field: value}]) for field in fields for name, value in
             VALUES.items()}  # fmt: skip
    return made | _broken_bytes(lines([{"text": "[[A]]"}]))


_PLAN = """
[[models]]
name = "m"
chat = {kind = "recorded", path = "replies.jsonl"}
"""
_NUMBERS = ("nan", "inf", "-1", "1e308", "true", "0", '"x"', "[]", "1" + "0" * 30)


def plans() -> dict[str, bytes]:
    """Return sampling plans, by their defect."""
    model_lines = {
        "an unknown setting": "temprature = 1", "a group": 'group = "big"', "languages": 'languages = "en"',
        "no language": 'languages = ["xx"]', "system": "system = 3", "nul in system": 'system = "a\\u0000b"',
        "an escape in the language": 'answer_language = "\\u001b[2J"', "a key twice": 'name = "k"',
    }  # fmt: skip
    made = {"good": _PLAN.encode(), "two of one name": _PLAN.encode() * 2, "json": b'{"models": []}'}
    made |= {name: f"{_PLAN}{line}\n".encode() for name, line in model_lines.items()}
    for key in ("temperature", "top_p", "max_tokens", "num_responses", "seed", "price"):
        made |= {f"{key} is {number[:6]}": f"{_PLAN}{key} = {number}\n".encode() for number in _NUMBERS}
    made |= {f"price of {number[:6]}": f"{_PLAN}price = [{number}, 1]\n".encode() for number in _NUMBERS}
    made |= {f"quota {number[:6]}": f"quotas = {{strong = {number}}}\n{_PLAN}".encode() for number in _NUMBERS}
    kinds = ("recorde", "../x", "os.path", "", "\\u001b[2J", "openai_compatible", "local")
    made |= {f"kind {kind!a}": _PLAN.replace("recorded", kind).encode() for kind in kinds}
    paths = ("nothing.jsonl", ".", "/dev/zero", "", "good.jsonl")
    made |= {f"replies in {path}": _PLAN.replace("replies.jsonl", path).encode() for path in paths}
    return made | _broken_tables(_PLAN.encode())


def prices() -> dict[str, bytes]:
    """Return price files of the model gpt, by their defect."""
    good = '["gpt"]\ninput = 1.0\noutput = 2.0\n'
    made = {
        "good": good, "no table": "input = 1.0\noutput = 2.0\n", "a number": "gpt = 3\n", "a list": "gpt = [1.0, 2.0]\n",
        "half": "[gpt]\ninput = 1.0\n", "another model": good.replace("gpt", "x"), "unknown": f"{good}cached = 1.0\n",
    }  # fmt: skip
    made |= {f"input is {number[:6]}": good.replace("1.0", number) for number in _NUMBERS}
    return {name: text.encode() for name, text in made.items()} | _broken_tables(good.encode())


def shares() -> dict[str, bytes]:
    """Return files of wanted shares, by their defect."""
    good = "[language]\nen = 0.5\nzh = 0.5\n"
    made = {
        "good": good, "too little": good.replace("0.5", "0.4"), "unknown table": f"{good}[languag]\nen = 1.0\n",
        "no such language": good.replace("zh", "xx"), "no such category": "[category]\nzz = 1.0\n",
        "a number": "language = 3\n", "nested": "[language.en]\nx = 1.0\n", "no shares": "[language]\n",
        "an escape": good.replace("zh", '"\\u001b[2J"'),
    }  # fmt: skip
    made |= {f"a share is {number[:6]}": good.replace("0.5", number, 1) for number in _NUMBERS}
    return {name: text.encode() for name, text in made.items()} | _broken_tables(good.encode())


def _broken_tables(good: bytes) -> dict[str, bytes]:
    """Return invalid TOML, and other encodings of a good file."""
    return {
        "empty": b"", "cut off": good[:-4], "a byte order mark": b"\xef\xbb\xbf" + good, "crlf": good.replace(b"\n", b"\r\n"),
        "nul": good + b"\0", "latin-1": good + b'about = "\xe9"', "utf-16": good.decode().encode("utf-16"),
        "surrogate": good + b'about = "\\ud800"\n', "deep": b"a = " + b"[" * 5000, "gzip": gzip.compress(good, mtime=0),
        "random": bytes(range(256)) * 16, "twice": good + good, "unknown": b"unknown = 1\n" + good,
    }  # fmt: skip


def _set(path: Path, *keys, value) -> None:
    content = json.loads(path.read_text("utf-8"))
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    path.write_text(json.dumps(content), "utf-8")


def model_folders() -> dict[str, Callable[[Path], object]]:
    """Return changes to a good model folder, by name."""
    made: dict[str, Callable[[Path], object]] = {}
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors", "steelyard.json"):
        made |= {
            f"{name} is absent": lambda folder, name=name: (folder / name).unlink(),
            f"{name} is empty": lambda folder, name=name: (folder / name).write_bytes(b""),
            f"{name} is cut off": lambda folder, name=name: (folder / name).write_bytes((folder / name).read_bytes()[:-40]),
            f"{name} is random": lambda folder, name=name: (folder / name).write_bytes(bytes(range(256)) * 8),
            f"{name} is a list": lambda folder, name=name: (folder / name).write_text("[]"),
            f"{name} is an object": lambda folder, name=name: (folder / name).write_text("{}"),
            f"{name} is a number": lambda folder, name=name: (folder / name).write_text("3"),
            f"{name} is deep": lambda folder, name=name: (folder / name).write_text("[" * 100_000),
            f"{name} is a pointer": lambda folder, name=name: (folder / name).write_text("version https://git-lfs.github.com/spec/v1\n"),
            f"{name} is a folder": lambda folder, name=name: ((folder / name).unlink(), (folder / name).mkdir()),
        }  # fmt: skip
    config = {
        "hidden_size": (-1, 0, "x", 10**9, None), "num_hidden_layers": (-1, 10**6, "two"), "vocab_size": (0, -5, 3),
        "model_type": ("nothing", 3, "../x"), "num_attention_heads": (0, 7), "architectures": ([], ["Evil"], 3),
        "auto_map": ({"AutoModelForSequenceClassification": "evil.Model"},), "pad_token_id": (10**6, "x"),
        "num_labels": (0, 3), "torch_dtype": ("float1", 3), "dtype": ("float1",), "rope_theta": ("x",),
    }  # fmt: skip
    for key, values in config.items():
        for value in values:
            made[f"config {key} is {value}"] = lambda folder, key=key, value=value: _set(
                folder / "config.json", key, value=value
            )
    made["weights of a size that lies"] = lambda folder: (folder / "model.safetensors").write_bytes(
        struct.pack("<Q", 2**60) + (folder / "model.safetensors").read_bytes()[8:]
    )
    made["an index that leaves the folder"] = lambda folder: (
        (folder / "model.safetensors").unlink(),
        (folder / "model.safetensors.index.json").write_text('{"weight_map": {"score.weight": "../../x.safetensors"}}'),
    )
    for name, index in (("no map", "{}"), ("a list", "[]"), ("a missing shard", '{"weight_map": {"a": "b.bin"}}')):
        made[f"an index with {name}"] = lambda folder, index=index: (
            (folder / "model.safetensors").unlink(),
            (folder / "model.safetensors.index.json").write_text(index),
        )
    return made


def run_folders() -> dict[str, Callable[[Path], object]]:
    """Return changes to the folder of a good run, by name."""
    made: dict[str, Callable[[Path], object]] = {}
    for name in ("run.json", "items.jsonl", "scores.jsonl"):
        made |= {
            f"{name} is absent": lambda folder, name=name: (folder / name).unlink(),
            f"{name} is empty": lambda folder, name=name: (folder / name).write_bytes(b""),
            f"{name} is cut off": lambda folder, name=name: (folder / name).write_bytes((folder / name).read_bytes()[:-40]),
            f"{name} is random": lambda folder, name=name: (folder / name).write_bytes(bytes(range(256)) * 8),
            f"{name} is an object": lambda folder, name=name: (folder / name).write_text("{}\n"),
            f"{name} is a list": lambda folder, name=name: (folder / name).write_text("[]\n"),
            f"{name} is deep": lambda folder, name=name: (folder / name).write_text("[" * 100_000),
        }  # fmt: skip
    for key, values in {
        "summary": ({}, [], None, 3), "counts": ({}, None), "config": ({}, [], 3), "stage": ("", "no", 3, "train"),
        "inputs": ({}, [], {"bench": {"path": "/dev/zero", "sha256": "0"}}), "outputs": ({"../x": "0"}, [], {}),
        "seconds": (-1, "x", 1e999), "versions": (3,),
    }.items():  # fmt: skip
        for number, value in enumerate(values):
            made[f"run {key} {number}"] = lambda folder, key=key, value=value: _set(
                folder / "run.json", key, value=value
            )
    made["its summary's accuracy is a text"] = lambda folder: _set(
        folder / "run.json", "summary", "accuracy", value={"value": "x", "low": None, "high": None, "n": 3}
    )
    made["its model has escapes"] = lambda folder: _set(
        folder / "run.json", "summary", "model", value="\x1b[2J\u202e[a](b)|<b>"
    )
    return made


def tables() -> dict[str, bytes]:
    """Return tables and arrays of rows, by file name."""
    row = b'{"prompt": "q", "chosen": "a", "rejected": "b"}'
    return {
        "quoted.csv": b'prompt,chosen,rejected\n"q,a,b\n', "nul.csv": b"prompt,chosen,rejected\nq,a\0,b\n",
        "ragged.csv": b"prompt,chosen,rejected\nq,a\n", "twice.csv": b"prompt,prompt\nq,a\n", "header.csv": b"prompt,chosen,rejected\n",
        "latin.csv": b"prompt,chosen,rejected\n\xe9,a,b\n", "empty.csv": b"", "blank.csv": b"\n\n\n", "wide.csv": b"," * 100_000 + b"\n",
        "field.csv": b"prompt,chosen,rejected\nq," + b"x" * 200_000 + b",b\n", "ragged.tsv": b"prompt\tchosen\nq\n", "nul.tsv": b"a\tb\n\0\t\n",
        "broken.json": b"[" + row, "objects.json": b"{}", "nested.json": b"[[" + row + b"]]", "mixed.json": b"[" + row + b", 3]",
        "empty.json": b"[]", "deep.json": b"[" * 100_000, "commas.json": b"[,]", "twice.json": b'[{"prompt": "a", "prompt": "b"}]',
        "not.parquet": b"x" * 100, "cut.parquet": b"PAR1\x00\x00\x00\x00PAR1", "empty.parquet": b"",
    }  # fmt: skip


def recipes() -> dict[str, bytes]:
    """Return invalid recipes, ablations and sweeps."""
    stage = b'[stages.%s]\nverb = "resolve"\ncases = "cases.jsonl"\n'
    return {
        "empty": b"", "not toml": b"{", "latin-1": b'a = "\xe9"', "no stages": b"stages = 3\n", "an empty stage": b"[stages.a]\n",
        "a stage outside": stage % b'"../a"', "an absolute stage": stage % b'"/tmp/a"', "a hidden stage": stage % b'".a"',
        "an unknown verb": b'[stages.a]\nverb = "remove"\n', "a verb that is a number": b"[stages.a]\nverb = 3\n",
        "a circle": b'[stages.a]\nverb = "resolve"\ncases = "b/x"\n[stages.b]\nverb = "resolve"\ncases = "a/x"\n',
        "a file that is not there": stage % b"a", "a device": (stage % b"a").replace(b"cases.jsonl", b"/dev/zero"),
        "an unknown setting": stage % b"a" + b"config.x = 1\n", "a config that is a text": stage % b"a" + b'config = "x"\n',
        "threads": stage % b"a" + b"num_threads = -1\n", "deep": b"a = " + b"[" * 5000 + b"\n", "nul": b"a = 1\0\n",
        "seeds": b'model = "x"\nbenches = []\nseeds = []\n', "gzip": gzip.compress(b"a = 1", mtime=0),
    }  # fmt: skip
