"""What becomes of items whose translator spoils its replies: done again, listed, found, or wrong without a word.

    python studies/translation/hostile_server.py DATA [--number 8] [--only WORD]

DATA holds the published files of LLMBar. A server translates items of LLMBar, with a path, an address and a call added,
into Spanish by Apertium (eng-spa), and spoils each reply in one way: ``always``, or ``once`` for each document. A
language model is thus simulated that has this habit, or an accident. Every translation is compared with that of the
run without a fault.
"""

import json
import re
import shutil
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import typer
from damage import share

from steelyard.core.errors import UserError
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.io.cases import read_cases, write_cases
from steelyard.stages.translate import Config, translate

Spoil = Callable[[str, str], str | dict]
"""Returns the spoilt reply, or the choice of a completion, of the right reply and the text of the request."""

_KEPT = re.compile(r"(⟦[A-Z]*\d+⟧|^=== .* ===$|\n)", re.MULTILINE)
_LINE = re.compile(r"(^=== .* ===$)", re.MULTILINE)
_MARK = re.compile(r"⟦([A-Z]*)(\d+)⟧")
_ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


@lru_cache(4096)
def apertium(text: str) -> str:
    """Translate into Spanish all but marks and the lines between sections."""
    parts = _KEPT.split(text)
    done = [
        subprocess.run(["apertium", "-u", "eng-spa"], input=part.encode(), capture_output=True, check=True).stdout
        if part.strip()
        else part.encode()
        for part in parts[::2]
    ]
    return "".join(part.decode() + mark for part, mark in zip(done, [*parts[1::2], ""], strict=True))


def each(change: Callable[[str], str]) -> Spoil:
    """Change each section of a document, or the whole of another reply."""

    def spoil(reply: str, source: str) -> str:
        parts = _LINE.split(reply)
        if len(parts) == 1:
            return change(reply)
        return "".join(f"\n{change(part.strip())}\n" if part.strip() and "=== " not in part else part for part in parts)

    return spoil


def framed(frame: str) -> Spoil:
    """Write a frame around each section."""
    return each(lambda text: frame.replace("{}", text))


def marks(change: Callable[[re.Match[str]], str]) -> Spoil:
    """Change each mark."""
    return lambda reply, source: _MARK.sub(change, reply)


def outside(change: Callable[[str], str]) -> Spoil:
    """Change the text between marks."""
    return each(
        lambda text: "".join(part if _MARK.fullmatch(part) else change(part) for part in re.split(r"(⟦\w+⟧)", text))
    )


def with_marks(text: str) -> Spoil:
    """Write another text in place of each section, with its marks."""
    return each(lambda reply: " ".join([text, *(match[0] for match in _MARK.finditer(reply))]))


SPOILT: dict[str, Spoil] = {
    "reasoning in a field": lambda reply, source: {"message": {"content": reply, "reasoning_content": "Let me see."}},
    "<think>": lambda reply, source: f"<think>\nLet me see. === x ===\n</think>\n\n{reply}",
    "<think> without its beginning": lambda reply, source: f"Let me see.\n</think>\n\n{reply}",
    "<think> without its end": lambda reply, source: f"<think>\n{reply}",
    "cut off": lambda reply, source: {"message": {"content": reply[: len(reply) // 2]}, "finish_reason": "length"},
    "content filter": lambda reply, source: {"message": {"content": ""}, "finish_reason": "content_filter"},
    "empty": lambda reply, source: {"message": {"content": None}},
    "parts of a content": lambda reply, source: {"message": {"content": [{"type": "text", "text": reply}]}},
    "fence around all": lambda reply, source: f"```\n{reply}\n```",
    "opening": lambda reply, source: f"Here is the translation:\n\n{reply}",
    "closing": lambda reply, source: f"{reply}\n\nI hope this helps!",
    "fence": framed("```\n{}\n```"), "quotation marks": framed('"{}"'), "guillemets": framed("«{}»"),
    "bold": framed("**{}**"), "element": framed("<translation>{}</translation>"),
    "JSON": framed('{"translation": "{}"}'),
    "opening each": framed("Here is the translation: {}"),
    "Spanish opening": framed("Aquí tienes la traducción:\n\n{}"),
    "Spanish:": framed("Spanish: {}"), "Español:": framed("Español:\n{}"), "Usuario:": framed("Usuario: {}"),
    "Assistant:": framed("Assistant: {}"), "closing each": framed("{}\n\n¡Espero que esto te ayude!"),
    "note": framed("{}\n\n(Nota: he conservado los nombres propios.)"), "end token": framed("{}</s>"),
    "loop": each(lambda text: text + " y otra vez la misma frase larga de siempre." * 40),
    "two versions": each(lambda text: f"Versión 1: {text}\n\nVersión 2: {_MARK.sub('', text)}"),
    "answer": with_marks("Claro, la respuesta a su pregunta es que depende de muchas cosas distintas."),
    "refusal": with_marks("Lo siento, pero no puedo ayudar con esa solicitud."),
    "refusal in Chinese": with_marks("很抱歉，我无法翻译这个内容。"),
    "another language": with_marks("Dies ist ein Satz auf Deutsch, der mit der Vorlage nichts zu tun hat."),
    "source": lambda reply, source: source, "source first": lambda reply, source: f"{source}\n\n{reply}",
    "twice": lambda reply, source: f"{reply}\n\n{reply}",
    "last sentence lost": each(lambda text: text.rpartition(". ")[0] or text),
    "lines joined": each(lambda text: " ".join(text.split())),
    "names of sections translated": lambda reply, source: reply.replace(" end ===", " fin ==="),
    "no last line": lambda reply, source: re.sub(r"=== \w+ end ===\s*\Z", "", reply),
    "capitals": outside(str.upper), "mojibake": outside(lambda text: text.encode().decode("latin-1")),
    "replacement characters": outside(lambda text: re.sub("[óáí]", "\ufffd", text)),
    "NUL": framed("{}\0"),
    "U+200B": outside(lambda text: text.replace(" ", " \u200b")), "byte order mark": framed("\ufeff{}"),
    "fixed blanks": outside(lambda text: text.replace(" ", "\u00a0")),
    "soft hyphens": outside(lambda text: re.sub(r"(\w{4})(\w{4})", "\\1\u00ad\\2", text)),
    "direction": framed("\u202b{}\u202c"), "direction turned over": framed("\u202e{}"),
    "marks 【1】": marks(lambda mark: f"【{mark[1]}{mark[2]}】"),
    "marks [1]": marks(lambda mark: f"[{mark[1]}{mark[2]}]"),
    "marks in Arabic digits": marks(lambda mark: f"⟦{mark[1]}{mark[2].translate(_ARABIC)}⟧"),
    "marks with blanks": marks(lambda mark: f"⟦ {mark[1]}{mark[2]} ⟧"),
    "marks with U+200B": marks(lambda mark: f"⟦\u200b{mark[1]}{mark[2]}⟧"),
    "marks with U+200E": marks(lambda mark: f"\u200e⟦\u200e{mark[1]}{mark[2]}⟧\u200e"),
    "marks in bold": marks(lambda mark: f"**{mark[0]}**"),
    "marks in quotation marks": marks(lambda mark: f"«{mark[0]}»"),
    "marks lost": marks(lambda mark: ""), "marks doubled": marks(lambda mark: mark[0] * 2),
    "marks renumbered": marks(lambda mark: f"⟦{mark[1]}{int(mark[2]) + 1}⟧"),
    "marks at the end": each(
        lambda text: " ".join([_MARK.sub("", text), *(match[0] for match in _MARK.finditer(text))])
    ),
}  # fmt: skip


@contextmanager
def serving(spoil: Spoil | None, *, is_once: bool) -> Iterator[tuple[str, Counter[str]]]:
    """Serve translations, spoilt always, or once for each document; yields the address and the requests by text."""
    asked: Counter[str] = Counter()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            source = body["messages"][-1]["content"]
            with lock:
                asked[source] += 1
                is_spoilt = spoil is not None and not (is_once and (asked[source] > 1 or "=== " not in source))
            reply = apertium(source)
            spoilt = spoil(reply, source) if spoil is not None and is_spoilt else reply
            choice = {"message": {"content": spoilt}} if isinstance(spoilt, str) else spoilt
            sent = json.dumps({"choices": [{"finish_reason": "stop", **choice}], "model": "m"}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *args: object) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def items(data: Path, number: int) -> Iterator[Case]:
    """Short items of LLMBar, with pieces that must stay."""
    rows = json.loads((data / "llmbar/Dataset/LLMBar/Natural/dataset.json").read_text(encoding="utf-8"))
    names = ("input", "output_1", "output_2")
    rows = [row for row in rows if sum(len(row[name]) for name in names) < 900 and row[names[1]] != row[names[2]]]
    for place, row in enumerate(rows[:number]):
        first = f"{row['output_1']}\n\nSee `program.reverse{place}()` and https://example.org/{place} for more of it."
        texts = {"a": first, "b": f"{row['output_2']} The file is called `data_{place}.txt` there."}
        yield Case(
            prompt=Prompt(id=f"p{place}", messages=(Message(role="user", content=row["input"]),), language="en"),
            responses=tuple(Response(id=name, text=text) for name, text in texts.items()),
            ranking=(("a",), ("b",)),
        )


def translated(path: Path, out: Path, number: int, spoil: Spoil | None, *, is_once: bool) -> dict[str, list[str]]:
    """Return the texts of the translations by prompt; of a run that ends without any, none."""
    shutil.rmtree(out, ignore_errors=True)
    with serving(spoil, is_once=is_once) as (url, _):
        chat = {"base_url": url, "model": "m", "num_tries": 2, "workers": 2, "wait_seconds": 0.01}
        config = Config(to=("es",), chat=chat, allow_failed=number, max_truncated=1.0)
        try:
            translate(path, out, config)
        except UserError as error:  # a run that no item survives is an outcome here
            typer.echo(f"    {str(error).splitlines()[0][:150]}", err=True)
            return {}
    return {
        case.prompt.id: [case.prompt.messages[0].content, *(each.text or "" for each in case.responses)]
        for case in read_cases(out / "cases.jsonl")
        if case.prompt.language == "es"
    }


def main(data: Path, number: int = 8, only: str = "") -> None:
    """Print what becomes of the items, by fault."""
    total: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "bench.jsonl"), Path(folder, "out")
        write_cases(path, items(data, number))
        plain = translated(path, out, number, None, is_once=False)
        typer.echo("| fault | when | as without it | found | silent | listed |\n|---|---|---|---|---|---|")
        for name, spoil in SPOILT.items():
            for when in ("always", "once") if only in name else ():
                texts = translated(path, out, number, spoil, is_once=when == "once")
                lines = (out / "findings.jsonl").read_text(encoding="utf-8").splitlines() if texts else []
                found = {json.loads(line)["prompt"] for line in lines}
                outcomes = Counter(
                    "same" if texts[prompt] == plain[prompt] else "found" if prompt in found else "silent"
                    for prompt in texts
                )
                outcomes["listed"] = number - len(texts)
                total.update({(when, outcome): count for outcome, count in outcomes.items()})
                row = " | ".join(str(outcomes[outcome]) for outcome in ("same", "found", "silent", "listed"))
                typer.echo(f"| {name} | {when} | {row} |")
    for when in ("always", "once"):
        num_items = sum(count for (which, _), count in total.items() if which == when)
        typer.echo(f"{when}: silent {share(total[when, 'silent'], num_items)}")


if __name__ == "__main__":
    typer.run(main)
