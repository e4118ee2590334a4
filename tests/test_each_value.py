"""A loop over values hides none of them: each is tested, and each that fails is named with its error."""

import pytest

from each_value import each


@pytest.fixture
def limit():
    return 2


def test_every_value_that_fails_is_named_and_those_after_it_are_tested(limit):
    tested = []

    @each(("kind", "number"), [("a", 1), ("b", 2), ("c", 3), ("d", 4)])
    def check(kind, number, limit):
        tested.append(kind)
        assert number < limit, f"{number} is too large"

    with pytest.raises(pytest.fail.Exception) as failure:
        check(limit=limit)
    assert tested == ["a", "b", "c", "d"]
    first, *others = str(failure.value).split("\nkind=")
    assert first == "3 of 4 values failed"
    assert [line.split(": ")[0] for line in others] == ["'b', number=2", "'c', number=3", "'d', number=4"]
    assert "AssertionError: 2 is too large" in others[0]


@each("second", ["x", "y"])
@each("first", [1, 2])
def test_two_loops_take_every_pair_and_the_fixtures(first, second, limit):
    assert (first in (1, 2), second in ("x", "y"), limit) == (True, True, 2)


def test_an_error_that_is_missing_and_a_skip_are_failures():
    @each("text", ["1", "x"])
    def refuses(text):
        with pytest.raises(ValueError, match="invalid literal"):
            int(text)

    @each("text", ["x"])
    def skips(text):
        pytest.skip("no such library")

    with pytest.raises(pytest.fail.Exception, match=r"1 of 2 values failed\ntext='1': .*DID NOT RAISE"):
        refuses()
    with pytest.raises(pytest.fail.Exception, match=r"text='x': .*no such library"):
        skips()


def test_no_value_is_a_failure():
    @each("text", [])
    def check(text): ...

    with pytest.raises(AssertionError, match="no value to test"):
        check()
