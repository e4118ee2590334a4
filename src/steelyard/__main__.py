"""The command line as ``python -m steelyard``, for launchers that start modules."""

import sys

# ``-m`` puts the current folder first: a file that lies there by chance would be imported in place of a package.
if not sys.flags.safe_path:
    del sys.path[0]

from steelyard.cli.main import main

main()
