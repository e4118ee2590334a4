"""Figures and tables that a reader saves from the page, and the links to its parts, in a browser."""

import base64
import csv
import io
import json
import re
import struct
from xml.etree import ElementTree as ET

import pytest

from browser import CHROMIUM, opened
from report_runs import all_runs
from steelyard.report.page import render
from steelyard.report.sources import read_sources
from steelyard.views.page import page_of, read_data

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]
CELLS = {
    "=1+1": "'=1+1",
    "+49 30": "+49 30",
    "@SUM(A1)": "'@SUM(A1)",
    "-cmd|' /C calc'!A0": "'-cmd|' /C calc'!A0",
    "\uff1d1": "'\uff1d1",
    "\tx": '"\'\tx"',
    "\u221213.1": "-13.1",
    "+9.0 … +17.2": "+9.0 … +17.2",
    "71.2%": "71.2%",
    "1,457": '"1,457"',
    'a "b"': '"a ""b"""',
    "中文": "中文",
}
PROBE = r"""
<script>
(async () => {
  const blobs = [], names = [], result = {};
  URL.createObjectURL = (blob) => { blobs.push(blob); return "blob:probe"; };
  URL.revokeObjectURL = () => {};
  HTMLAnchorElement.prototype.click = function () { names.push(this.download); };
  const pressed = async (panel, text) => {
    [...panel.querySelectorAll(".panel-tools button")].find((one) => one.textContent === text).click();
    for (let at = 0; at < 200 && !blobs.length; at += 1) await new Promise((done) => setTimeout(done, 20));
    const bytes = new Uint8Array(await blobs.pop().arrayBuffer());
    return [names.pop(), btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))];
  };
  while (!document.body.dataset.drawn) await new Promise((done) => setTimeout(done, 20));
  const panel = document.querySelector(".panel:has([data-figure]):has(.legend):has(table)");
  for (const text of ["SVG", "PNG", "CSV"]) result[text] = await pressed(panel, text);
  result.table = [...panel.querySelectorAll("tbody tr:not(.part)")].length;
  result.panel = panel.id;
  const click = new MouseEvent("click", { bubbles: true, cancelable: true });
  panel.querySelector(".panel-tools .anchor").dispatchEvent(click);
  await new Promise((done) => setTimeout(done, 200));
  result.hash = location.hash;
  result.cells = CELLS.map(Downloads.cell);
  result.ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  document.body.dataset.probe = JSON.stringify(result);
})();
</script>
""".replace("CELLS", json.dumps(list(CELLS)))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """What the buttons of a panel hand to the browser, in the Chinese page of hostile runs."""
    folder = tmp_path_factory.mktemp("downloads")
    data = read_data(read_sources(all_runs(folder, 9, hostile=True)))
    page = page_of(data, title=None, language="zh", budget=0, version="1")
    (accuracy,) = [section for section in page.sections if section.anchor == "accuracy"]
    before, end, after = ("<!doctype html>" + render(page._replace(sections=(accuracy,)))).rpartition("</body>")
    before = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", before)
    (folder / "probe.html").write_text(f"{before}{PROBE}{end}{after}", encoding="utf-8")
    page = opened(f"file://{folder}/probe.html", folder / "profile", awaited="data-probe=")
    assert page.complaints == []
    (body,) = page.document.all("body")
    return json.loads(body.attributes["data-probe"])


def test_a_figure_is_saved_as_svg_with_title_legend_and_colours(saved):
    name, content = saved["SVG"]
    text = base64.b64decode(content).decode()
    root = ET.fromstring(text)
    assert name.startswith("steelyard-accuracy-")
    assert name.endswith(".svg")
    assert "var(--" not in text
    assert "href" not in text
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0].startswith("按类别")
    assert {"取较长回答", "随机", "准确率"} <= set(texts)
    assert not {"random", "Accuracy"} & set(texts)


def test_a_figure_is_saved_as_png_at_twice_its_size(saved):
    size = ET.fromstring(base64.b64decode(saved["SVG"][1])).attrib
    png = base64.b64decode(saved["PNG"][1])
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", png[16:24])
    assert (width, height) == (round(2 * float(size["width"])), round(2 * float(size["height"])))


def test_a_table_is_saved_as_csv_that_spreadsheets_read(saved):
    content = base64.b64decode(saved["CSV"][1])
    assert content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    assert len(rows) == saved["table"] + 1
    assert len({len(row) for row in rows}) == 1
    assert "准确率" in rows[0]
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "@"))]


def test_no_cell_is_a_formula_and_numbers_stay_numbers(saved):
    assert saved["cells"] == list(CELLS.values())


def test_a_click_on_the_sign_leads_to_the_panel(saved):
    assert saved["hash"] == f"#{saved['panel']}"
    assert len(saved["ids"]) == len(set(saved["ids"]))
