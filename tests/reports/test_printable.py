from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from watchdog.reports.printable import (
    html_text,
    markdown_code,
    markdown_fence,
    markdown_text,
    one_line,
    printable,
    without_bars,
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
    ("text", "written"),
    [
        ("update_weights < _read (a_b.py:3) < send", "update_weights < `_read` (a_b.py:3) < send"),
        ("R&D, a & b, a < b > c", "R&D, a & b, a < b > c"),
        ("a <script> b", "a `<script>` b"),
        ("it is in (__init__).", "it is in (`__init__`)."),
        ("of **all** *these* words", "of `**all** *these*` words"),
        ("[x](y)", "`[x](y)`"),
        ("(get _a), _b < c", "(get `_a`), `_b` < c"),
        ("&lt; is an entity", "`&lt;` is an entity"),
        ("# title", "`#` title"),
        ("- item", "`-` item"),
        ("--colocate is set", "`--colocate` is set"),
        ("1. one", "`1`. one"),
        ("see #12 and own/er#3", "see `#12` and `own/er#3`"),
        ("ask @team", "ask `@team`"),
        ("run `ls -l | wc` and <x>", "run `ls -l | wc` and `<x>`"),
        ("one ` alone", "one `` ` `` alone"),
        ("*a`b`", "`*a` `b`"),
    ],
)
def test_prose_reads_the_same_unrendered_and_is_read_as_prose(text, written):
    assert markdown_text(text) == written


MARKUP = st.text(alphabet="`*_~[]()<>/!&;#@\\|$ab1.-+= \n") | st.text()


class Shown(HTMLParser):
    """What a reader of the page sees, and which tags are in it."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text, self.prose, self._is_code = set(), "", "", False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self._is_code = tag == "code"

    def handle_endtag(self, tag):
        self._is_code = False

    def handle_data(self, data):
        self.text += data
        self.prose += "" if self._is_code else data


@settings(max_examples=400)
@given(MARKUP)
def test_whatever_stands_in_a_log_line_opens_nothing_but_code_spans(text):
    page = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

    seen = Shown(page.render(f"- {markdown_text(text)}"))

    assert seen.tags <= {"ul", "li", "code"}
    assert not re.search(r"@|#\d", seen.prose)
    kept = re.sub(r"[\s`]", "", one_line(text))
    assert re.sub(r"[\s`]", "", seen.text) == kept


@settings(max_examples=200)
@given(MARKUP)
def test_a_cell_ends_where_the_table_says(text):
    page = MarkdownIt("commonmark", {"html": True}).enable("table")
    cells = f"| {markdown_text(without_bars(text))} | {markdown_code(without_bars(text))} | end |"

    html = page.render(f"| a | b | c |\n| --- | --- | --- |\n{cells}\n")

    assert html.count("<td>") == 3
    assert "<td>end</td>" in html


@given(MARKUP)
def test_text_inside_of_a_tag_opens_no_other(text):
    assert Shown(f"<summary>{html_text(text)}</summary>").tags == {"summary"}
