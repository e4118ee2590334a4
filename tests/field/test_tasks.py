"""The tasks of docs/tasks.md, run in order in an empty folder as a new user would paste them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
TASK = re.compile(r"^### (\d+)\. (.+?)\n(.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
pytestmark = pytest.mark.field


def test_both_pages_have_the_same_tasks_and_commands():
    tasks = {
        name: TASK.findall((ROOT / "docs" / name).read_text(encoding="utf-8")) for name in ("tasks.md", "tasks.zh.md")
    }
    numbers = {name: [int(number) for number, _, _ in each] for name, each in tasks.items()}
    assert numbers["tasks.md"] == numbers["tasks.zh.md"] == list(range(1, 38))
    added = {
        name: [BLOCK.findall(body) for number, _, body in each if int(number) > 30] for name, each in tasks.items()
    }
    assert added["tasks.md"] == added["tasks.zh.md"]


def test_every_task_can_be_pasted(tmp_path):
    scripts = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{scripts}:{os.environ['PATH']}", "COLUMNS": "80", "HF_HUB_OFFLINE": "1"}
    for number, title, body in TASK.findall(PAGE):
        for language, block in BLOCK.findall(body):
            words = ["bash", "-euc", block] if language == "sh" else [sys.executable, "-c", block]
            done = subprocess.run(
                words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
            )
            (tmp_path / f"task-{number}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
            assert done.returncode == 0, f"task {number}, {title}:\n{block}\n{done.stderr[-2000:]}"
            assert "Traceback" not in done.stderr
            assert "items has it" not in done.stdout, f"task {number} finds nothing"
            assert done.stdout.strip() or number in {"7", "26"}, f"task {number} prints nothing"
    for name in ("judges.html", "fails.html", "board/leaderboard.html", "demo/report/report.html"):
        assert (tmp_path / name).stat().st_size > 10_000
