"""A test that runs on each of many values in a loop: one id for all of them, and a failure that lists each value."""

import functools
import inspect
import traceback

import pytest

_OUTCOMES = (Exception, pytest.fail.Exception, pytest.skip.Exception)
"""What ends a test at a value. `pytest.raises` fails by an outcome, and a value that is skipped is not tested."""


def each(names, values):
    """Call the test with each value in place of `pytest.mark.parametrize`, which takes milliseconds for every id.

    The values share the fixtures of the test, so it is for tests that change none. Every value is tested, whatever
    failed before it.
    """
    keys = (names,) if isinstance(names, str) else tuple(names)
    cases = [dict(zip(keys, (value,) if isinstance(names, str) else value, strict=True)) for value in values]

    def decorate(test):
        signature = inspect.signature(test)

        @functools.wraps(test)
        def test_each(**fixtures):
            assert cases, "no value to test"
            failures = []
            for case in cases:
                try:
                    test(**fixtures, **case)
                except _OUTCOMES as error:
                    words = ", ".join(f"{key}={value!r}" for key, value in case.items())
                    failures.append(f"{words}: {_description(error, test)}")
            if failures:
                pytest.fail("\n".join([f"{len(failures)} of {len(cases)} values failed", *failures]), pytrace=False)

        rest = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        test_each.__signature__ = signature.replace(parameters=rest)
        return test_each

    return decorate


def _description(error, test):
    """Return the line of the test and the error there, its lines indented."""
    source = inspect.unwrap(test).__code__.co_filename
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source]
    text = f"line {lines[-1]}: {type(error).__name__}: {error}" if lines else f"{type(error).__name__}: {error}"
    return text.replace("\n", "\n    ")
