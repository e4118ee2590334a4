"""Marks in the form of words pass a real engine for words and sentences, and their pieces come back whole."""

import shutil
import subprocess

import pytest

from steelyard.translation.blocks import blocks
from steelyard.translation.marks import BRACKETS, WORDS, restore
from steelyard.translation.protection import has_prose, protect

pytestmark = [
    pytest.mark.field,
    pytest.mark.skipif(shutil.which("apertium") is None, reason="needs apertium and apertium-eng-spa"),
]
TEXT = """\
# How to read the file

Open `data/input.csv` with the function `pandas.read_csv`, and see https://example.com/guide?page=2 first.

- Run `pip install pandas` in the house.
- The <b>red</b> book costs $5, and the area is $A = \\pi r^2$.
- Write to help@example.org or call data.reverse() with --verbose.

> The file /usr/local/data is big.

| name | meaning |
|------|:-------:|
| `id` | the number of the house |
| {name} | the name of the dog |

```python
def read(path):
    # The comment stays in English.
    return open(path).read()
```

See [the white page](https://example.com/white_(page)) and ![the dog](dog.png).
"""


def apertium(text: str) -> str:
    command = ["apertium", "-u", "eng-spa"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize("style", [BRACKETS, WORDS])
def test_every_piece_of_a_markdown_text_is_intact_after_apertium(style):
    protected = protect(TEXT, style=style)
    translated = "".join(
        apertium(block.text).rstrip("\n")
        if block.is_translated and has_prose(protected._replace(text=block.text))
        else block.text
        for block in blocks(protected.text)
    )
    restored = restore(protected, translated)
    assert isinstance(restored, str), restored
    for piece in protected.pieces:
        assert restored.count(piece.text) == TEXT.count(piece.text), piece
    assert len(protected.pieces) >= 15
    assert "número de la casa |\n" in restored
    assert "\n- El <b>" in restored
    assert "\n> La " in restored
    assert "house" not in restored
