"""Run the cells of the notebook and write ``docs/notebook.ipynb`` and its Chinese twin, which share code and outputs.

A cell is its English and Chinese text and its code. The value of a last expression is shown as notebooks show it.
"""

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

LANGUAGES = ("en", "zh")
VARIES = "varies"
"""The tag of cells whose outputs depend on the processor: trained weights differ in their last digits."""


class Cell(NamedTuple):
    """A cell: its text in both languages, and the code under it. ``tag`` is `VARIES` or empty."""

    en: str
    zh: str
    code: str
    tag: str = ""


CELLS = (
    Cell(
        "# Steelyard in a notebook\n\nFrom judgments that contradict each other to a trained reward model and its"
        " evaluation, in two minutes on a CPU. Every function has the settings of the command of its name:"
        " [reference](api.md).",
        "# 在 notebook 中使用 Steelyard\n\n从互相矛盾的判断，到训练好的奖励模型及其评测，在 CPU 上两分钟完成。"
        "每个函数的设置与同名命令相同：[参考](api.md)（英文）。",
        "import steelyard as sy",
    ),
    Cell(
        "## Your own table\n\nRows, polars, pandas, pyarrow and `datasets` are read as they are. Known formats are"
        " recognised; here the columns are named.",
        "## 自己的表格\n\n可直接读取内存中的行、polars、pandas、pyarrow 和 `datasets`。已知格式自动识别；这里指定列名。",
        'rows = [{"question": "What is 2 + 2?", "good": "4", "bad": "5"}]\nrows += [{"question": "首都是哪里？", "good": "北京", "bad": "上海"}]\n'
        'converted = sy.convert(rows, prompt_column="question", chosen_column="good", rejected_column="bad")\n'
        "converted.cases",
    ),
    Cell(
        "The same cases as TRL reads them:",
        "同样的样本，TRL 可直接读取的形式：",
        "converted.cases.to_pairs()",
    ),
    Cell(
        "## Judgments that contradict each other\n\nThe rest uses built-in prompts in Chinese and English. The good"
        " answers were written by hand; the worse ones are generated, and **every judgment is simulated**. With `out=` a function writes the folder of the command;"
        " without it nothing stays behind.",
        "## 互相矛盾的判断\n\n以下使用内置的中英文提示词。好的回答由人工撰写，较差的回答由程序生成，**所有判断都是模拟的**。给出 `out=` 时，函数写出与命令相同的文件夹；不给则不留任何文件。",
        'simulated = sy.simulate(seed=1, out="simulated")\nsimulated.cases[:3]',
    ),
    Cell(
        "`resolve` turns judgments into rankings without conflicts, and reports how many there were.",
        "`resolve` 把判断转换为没有冲突的排序，并报告冲突的数量。",
        "resolved = sy.resolve(simulated.cases)\nresolved.table[:3]",
    ),
    Cell(
        "A figure of the report, in the notebook (`.charts()` has them all):",
        "报告中的图，直接显示在 notebook 里（`.charts()` 给出全部）：",
        'resolved.plot("Conflict ratio")',
    ),
    Cell(
        "## Split and train\n\n`split` keeps related prompts on one side. The backbone is tiny and begins from nothing; for"
        ' a real one write `model="Qwen/Qwen2.5-0.5B"`.',
        "## 切分与训练\n\n`split` 让相关的提示词留在同一侧。这里的骨干网络很小且未经训练；"
        '实际使用时写 `model="Qwen/Qwen2.5-0.5B"`。',
        'parts = sy.split(resolved, parts={"train": 0.8, "held_out": 0.2}, out="parts")\nparts.table',
    ),
    Cell(
        "",
        "",
        'tiny = sy.backbone(parts["train"], hidden_size=64, num_layers=1)\n'
        'model = sy.train(parts["train"], model=tiny, held_out=parts["held_out"], epochs=3, learning_rate=1e-3, batch_size=4)\n'
        "model",
        VARIES,
    ),
    Cell(
        "## Evaluate\n\nEvery number has its 95% interval over prompts and stands next to simple baselines.",
        "## 评测\n\n每个数字都带有按提示词计算的 95% 置信区间，并与简单基线并列。",
        'evaluation = sy.evaluate(model, simulated["test"], train_cases=parts["train"], out="evaluated")\nevaluation.accuracy',
        VARIES,
    ),
    Cell("", "", "evaluation.plot()", VARIES),
    Cell(
        "The baselines do not depend on the training:",
        "基线与训练无关：",
        'for name in ("longer", "shorter"):\n    print(name, evaluation.baselines[name].accuracy)',
    ),
    Cell(
        "## Look at one item\n\nIts judgments, the tiers, and the scores of the model:",
        "## 查看一个样本\n\n它的判断、层级，以及模型的分数：",
        'wrong = [item for item in evaluation.items if item["num_correct"] < item["num_pairs"]]\n'
        'sy.inspect(evaluation, wrong[0]["prompt"])',
        VARIES,
    ),
    Cell(
        "## Mistakes are answered\n\nA misspelt setting names the nearest one, and a number that could not be measured is"
        " never a number.",
        "## 出错时\n\n拼错的设置会给出最接近的名称；未能测得的数字绝不会被当作数字使用。",
        'try:\n    sy.resolve(simulated.cases, agregate="majority")\nexcept sy.errors.ConfigError as error:\n    print(error)',
    ),
    Cell(
        "## A report to send on\n\nOne HTML file that needs no network:",
        "## 可以发送的报告\n\n一个不需要网络的 HTML 文件：",
        'sy.report([resolved, model, evaluation], out="report.html").summary.runs',
    ),
)


def run_cells() -> Iterator[list[dict[str, Any]]]:
    """Run the code of all cells in one namespace, in a temporary folder, and yield the outputs of each."""
    names: dict[str, Any] = {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
        os.chdir(folder)
        try:
            for cell in CELLS:
                yield _outputs(cell.code, names)
        finally:
            os.chdir(before)


def _outputs(code: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, "<cell>", "exec"), names)
        shown = None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    if shown is not None:
        outputs.append({"output_type": "execute_result", "metadata": {}, "data": _bundle(shown)})
    return outputs


def _bundle(shown: Any) -> dict[str, Any]:
    if hasattr(shown, "_repr_mimebundle_"):
        return shown._repr_mimebundle_()
    html = {"text/html": shown._repr_html_()} if hasattr(shown, "_repr_html_") else {}
    return {**html, "text/plain": repr(shown)}


def notebook(outputs: list[list[dict[str, Any]]], language: str) -> str:
    """Return the notebook in one language."""
    cells: list[dict[str, Any]] = []
    for number, (cell, shown) in enumerate(zip(CELLS, outputs, strict=True), 1):
        text = getattr(cell, language)
        if text:
            cells.append({"cell_type": "markdown", "id": f"text-{number}", "metadata": {}, "source": text})
        numbered = [
            output | {"execution_count": number} if output["output_type"] == "execute_result" else output
            for output in shown
        ]
        cells.append(
            {
                "cell_type": "code",
                "id": f"code-{number}",
                "execution_count": number,
                "metadata": {"tags": [cell.tag]} if cell.tag else {},
                "outputs": numbered,
                "source": cell.code,
            }
        )
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    page = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(page, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    results = list(run_cells())
    for code in LANGUAGES:
        name = "notebook.ipynb" if code == "en" else f"notebook.{code}.ipynb"
        (folder / name).write_text(notebook(results, code), encoding="utf-8")
    sys.stdout.write(f"{len(CELLS)} cells\n")
