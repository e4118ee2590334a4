import subprocess
import sys

from many_processes import alone


def test_the_command_line_is_a_module_too():
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", "--version"], env=alone(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()[0]) == (0, "steelyard"), done.stderr
