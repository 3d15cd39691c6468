"""The tutorial, played from an empty directory: every block shows what was printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tutorial import PAGES, compare, cut_as, open_shell, play_page

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

pytestmark = pytest.mark.cluster

PAGE = """\
```console
$ printf 'one\\ntwo\\nthree\\n'
one
…
```

```yaml
# specs/topic.yaml
partitions: 3
```

```diff
--- specs/topic.yaml
-partitions: 3
+partitions: 6
```

```console
$ grep 3 specs/topic.yaml
$ echo $?
1
$ cat specs/topic.yaml
# specs/topic.yaml
partitions: 6
```

```text
$ exit 7
```
"""


def mark(page: Path) -> ParameterSet:
    """Leave the page with two clusters and seven applies to `make test-slow`."""
    marks = [pytest.mark.slow] if page.stem == "4-one-year" else []
    return pytest.param(page, id=page.stem, marks=marks)


@pytest.mark.parametrize("page", [mark(page) for page in PAGES])
def test_every_block_of_the_page_shows_what_is_printed(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    with open_shell() as shell:
        difference = compare(text, play_page(text, shell))
    assert not difference, difference


def test_a_block_that_shows_something_else_is_found_and_written_again() -> None:
    altered = PAGE.replace("partitions: 6\n```\n\n```text", "partitions: 3\n```\n\n```text")
    assert altered != PAGE
    for page in (PAGE, altered):
        with open_shell() as shell:
            assert play_page(page, shell) == PAGE
    assert "\n-partitions: 3\n+partitions: 6\n" in compare(altered, PAGE)


def test_a_command_that_fails_is_followed_by_its_exit_code() -> None:
    page = PAGE.replace("$ echo $?\n1\n", "")
    with open_shell() as shell, pytest.raises(AssertionError, match="exit 1 of grep 3"):
        play_page(page, shell)


@pytest.mark.parametrize(
    ("shown", "printed", "cut"),
    [
        ("a\n…\nd\n", "a\nb\nc\nd\n", "a\n…\nd\n"),
        ("…\nc\n…\n", "a\nb\nc\nd\n", "…\nc\n…\n"),
        ("a\nb\n", "a\nb\nc\n", "a\nb\nc\n"),
        ("a\n…\nx\n", "a\nb\nc\n", "a\nb\nc\n"),
        ("commit 0123456789\n…\n", "commit abcdef0123\nx\n", "commit abcdef0123\n…\n"),
    ],
)
def test_only_lines_are_left_out_that_the_page_leaves_out(
    shown: str, printed: str, cut: str
) -> None:
    assert cut_as(shown, printed) == cut


def test_names_that_are_equal_on_a_page_are_equal_in_a_run() -> None:
    page = "commit 0123456789\ncommit 0123456789\n"
    assert compare(page, "commit abcdef0123\ncommit abcdef0123\n") == ""
    assert compare(page, "commit abcdef0123\ncommit 0123456789\n") != ""
