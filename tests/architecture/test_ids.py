"""Test ids are the same in every process, under every hash seed and in every second.

Workers of a parallel run compare ids before they start: one id that holds a time, an address or the order of a set
stops the whole run, on some machines and not on others.
"""

import os
import subprocess
import sys

from package_source import ROOT


def test_another_process_a_moment_later_collects_the_same_ids(request):
    here = [item.nodeid for item in request.session.items]
    # Asserts as they stand: rewriting them takes most of a first collection, and no id depends on it.
    options = [
        "--assert=plain",
        "--collect-only",
        "-q",
        "-p",
        "no:randomly",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
    ]
    selected = ["-m", request.config.option.markexpr, "-k", request.config.option.keyword]
    seed = str(1 + int(os.environ.get("PYTHONHASHSEED", "0").replace("random", "0")))
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *selected, *request.config.args],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert collected.returncode == 0, collected.stdout[-2000:] + collected.stderr[-2000:]
    there = [line for line in collected.stdout.splitlines() if "::" in line]
    assert sorted(here) == sorted(there)
