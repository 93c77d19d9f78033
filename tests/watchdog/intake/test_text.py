from __future__ import annotations

import pytest

from watchdog.intake.text import clean_line, decode, looks_binary


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\x1b[36m(A pid=1)\x1b[0m x", "(A pid=1) x"),
        ("\x1b]0;title\x07x", "x"),
        ("a 1%\ra 2%\ra 3%", "a 3%"),
        ("a 1%\ra 2%\r", "a 2%"),
        ("(A pid=1) \rbar 1/9(A pid=1) \rbar 2/9(A pid=1) ", "(A pid=1) bar 2/9"),
        ("(A pid=1) \rbar 1/9(A pid=1) \rbar 2/9", "(A pid=1) bar 2/9"),
        ("[default1]:\rbar 2/9", "[default1]:bar 2/9"),
        ("x\x00y\x07z", "xyz"),
        ("\ttab stays", "\ttab stays"),
    ],
)
def test_a_line_is_as_a_terminal_shows_it_in_the_end(raw, clean):
    assert clean_line(raw).rstrip() == clean


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_text_is_decoded_whatever_its_encoding(encoding):
    text = "Process 1: a long enough line\nThread 1\n"

    assert decode(text.encode(encoding)) == text
    assert not looks_binary(text.encode(encoding))


def test_wrong_bytes_become_a_replacement_character():
    assert decode(b"rank \xff\xfe 3") == "rank \ufffd\ufffd 3"


def test_a_line_that_repeats_itself_is_cut_short_and_another_long_one_is_not():
    different = " ".join(str(number) for number in range(2_500))

    assert len(clean_line("[rank3]: ERROR " + "ERROR: " * 2_500)) < 2_200
    assert clean_line("[rank3]: " + different) == "[rank3]: " + different
