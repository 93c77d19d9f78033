from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchdog.reports.limits import STEPS
from watchdog.reports.markdown import step_text
from watchdog.reports.printable import (
    markdown_code,
    markdown_fence,
    markdown_text,
    one_line,
    printable,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("bell\x07", r"bell\x07"),
        ("c1 \x9b31m", r"c1 \x9b31m"),
        ("right to left \u202e", r"right to left \u202e"),
        ("lone \udc80", r"lone \udc80"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("dos\r\nline", "dos\nline"),
        ("Grüße 重み 🚀", "Grüße 重み 🚀"),
    ],
)
def test_what_moves_the_cursor_is_shown_as_an_escape(text, shown):
    assert printable(text) == shown


@given(st.text())
def test_every_text_can_be_encoded_afterwards_and_holds_no_control(text):
    shown = printable(text)

    shown.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)


@given(st.text(), st.integers(min_value=2, max_value=80))
def test_one_line_is_one_line_and_no_longer_than_asked_for(text, max_chars):
    line = one_line(text, max_chars)

    assert len(line) <= max_chars
    assert "\n" not in line


def test_a_cut_is_shown():
    assert one_line("abcdef", 4) == "abc…"


@given(st.text(alphabet="`ab ", min_size=1))
def test_a_code_span_is_closed_by_its_own_fence_only(text):
    span = markdown_code(text)
    if not span:
        return
    fence = re.match(r"`+", span).group()
    inner = span[len(fence) : -len(fence)]

    assert not re.search(rf"(?<!`){fence}(?!`)", inner)


@given(st.text(alphabet="`~a\n"))
def test_no_line_of_a_fenced_text_closes_the_fence(text):
    first, *body, last = markdown_fence(text).split("\n")
    fence = first.removesuffix("text")

    assert last == fence
    assert fence not in "\n".join(body)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("<script>", "&lt;script&gt;"),
        ("update_weights", "update_weights"),
        ("_maybe_get", r"\_maybe_get"),
        ("a|b", r"a\|b"),
        ("[x](y)", r"\[x\](y)"),
        ("**b**", r"\*\*b\*\*"),
        ("# title", r"\# title"),
        ("- item", r"\- item"),
        ("ask @team", "ask @<!-- -->team"),
    ],
)
def test_prose_is_read_as_prose(text, escaped):
    assert markdown_text(text) == escaped


def test_a_command_outside_of_tables_is_copied_as_it_is():
    step = (
        "Stacks: `for p in $(pgrep -f 'sglang::|VLLM::'); do py-spy dump --pid $p; done`, and <x>"
    )

    text = step_text(step, STEPS[0])

    assert "`for p in $(pgrep -f 'sglang::|VLLM::'); do py-spy dump --pid $p; done`" in text
    assert "&lt;x&gt;" in text
    assert text.startswith("Stacks: ")
