from steelyard.files.talk import bar, say, track


def test_talk_goes_to_stderr_and_never_to_stdout(capsys):
    say("[not markup] 杆秤")
    assert list(track(range(3), "counting", 3)) == [0, 1, 2]
    with bar("open", None) as one:
        one.advance(2, note="loss 0.5")
    out, err = capsys.readouterr()
    assert out == ""
    assert "[not markup] 杆秤" in err
