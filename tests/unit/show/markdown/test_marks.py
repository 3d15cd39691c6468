"""Escaping: what is quoted reads as it was written, to markdown, to HTML and in tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from reconciler.errors import escape_unprintable
from reconciler.show.markdown.marks import code, code_in_html, fence, folded, prose

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
HOSTILE = st.text(st.sampled_from("ab1_*`|<>&[]()!#@~\\$:-+ \n") | st.characters(), max_size=30)


def cell(markdown: str) -> tuple[str, set[str]]:
    """Return the text of the only cell of a table row, and the kinds of its tokens."""
    tokens = MARKDOWN.parse(f"| head |\n|---|\n| x{markdown}x |\n\nafter")
    inlines = [token for token in tokens if token.type == "inline"]
    assert [token.content for token in inlines[::2]] == ["head", "after"]
    children = inlines[1].children or []
    text = "".join(c.content for c in children if c.type in {"text", "code_inline"})
    return text.removeprefix("x").removesuffix("x"), {c.type for c in children}


@given(HOSTILE)
def test_prose_is_text_and_nothing_else(written: str) -> None:
    text, kinds = cell(prose(written))
    assert text.replace("\u200b", "") == escape_unprintable(written)
    assert kinds == {"text"}


@given(HOSTILE)
def test_code_is_code_and_nothing_else(written: str) -> None:
    text, kinds = cell(code(written))
    assert text == escape_unprintable(written)
    assert kinds <= {"text", "code_inline", "html_inline"}


@pytest.mark.parametrize(
    ("written", "escaped"),
    [
        ("snake_case_1", "snake_case_1"),
        ("__init__", "&#95;&#95;init&#95;&#95;"),
        ("a|b", "a&#124;b"),
        ("@octocat", "@\u200boctocat"),
        ("fixes #12", "fixes #\u200b12"),
        ("https://x.y", "https:\u200b//x.y"),
        ("www.x.y", "www\u200b.x.y"),
        (":100:", ":\u200b100:"),
        ("<b>", "&#60;b&#62;"),
    ],
)
def test_what_prose_turns_into(written: str, escaped: str) -> None:
    assert prose(written) == escaped


@pytest.mark.parametrize(
    ("written", "marked"),
    [
        ("shop.orders_v2", "`shop.orders_v2`"),
        ("@team/x", "`@team/x`"),
        ("a|b", "<code>a&#124;b</code>"),
        ("a`b", "<code>a&#96;b</code>"),
        ("", "<code></code>"),
    ],
)
def test_what_code_turns_into(written: str, marked: str) -> None:
    assert code(written) == marked


def test_a_name_in_html_is_no_html() -> None:
    assert code_in_html("<b>&") == "<code>&lt;b&gt;&amp;</code>"


def test_a_fence_is_longer_than_what_it_holds() -> None:
    (block,) = MARKDOWN.parse(fence("a\n````\nb", "diff"))
    assert (block.info, block.content) == ("diff", "a\n````\nb\n")


def test_what_is_folded_is_markdown_again() -> None:
    assert folded("s", "b") == "<details><summary>s</summary>\n\nb\n\n</details>"
