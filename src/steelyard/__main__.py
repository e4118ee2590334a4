"""The command line as ``python -m steelyard``, for launchers that start modules."""

from steelyard.doors.cli import main

main()
