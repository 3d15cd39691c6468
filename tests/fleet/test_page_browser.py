"""The page in a real browser: its script sorts and filters, and fetches nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser import CHROMIUM, visit
from sample_page import SAMPLE

from reconciler.fleet.page.html import render_page

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.html"
    path.write_text(render_page(SAMPLE), encoding="utf-8")
    return path


def _list_shown(document: str, table: str) -> list[str]:
    """Return the text of the first cell of each row that is shown."""
    (body,) = re.findall(rf'id="{table}">.*?<tbody>(.*?)</tbody>', document, re.DOTALL)
    return re.findall(r"<tr><td[^>]*>(?:<a[^>]*>)?([^<]*)", body)


def test_an_address_sorts_a_table(page: Path) -> None:
    down = visit(page, "#topics?sort=-leaders").document
    assert _list_shown(down, "topics") == ["shop.clicks", "shop.orders", "audit.log"]
    assert re.search(r'data-key="leaders"[^>]*aria-sort="descending"', down)

    by_number = visit(page, "#topics?sort=partitions").document
    assert _list_shown(by_number, "topics") == ["audit.log", "shop.orders", "shop.clicks"]


def test_an_address_filters_a_table_by_every_word(page: Path) -> None:
    document = visit(page, "#topics?filter=SHOP%20update").document
    assert _list_shown(document, "topics") == ["shop.orders"]
    assert "1 of 3 rows" in document


def test_an_address_chooses_the_values_of_a_column(page: Path) -> None:
    """A tile links to its rows so; text in other columns does not count."""
    document = visit(page, "#problems?problem=below%20min.insync.replicas").document
    assert _list_shown(document, "problems") == ["below min.insync.replicas"]
    owned = visit(page, "#inventory?owner=shop").document
    assert _list_shown(owned, "inventory") == ["shop.orders"]


def test_what_has_no_number_comes_last_both_ways(page: Path) -> None:
    for sort in ("pending", "-pending"):
        document = visit(page, f"#clusters?sort={sort}").document
        assert set(_list_shown(document, "clusters")[-2:]) == {"down", "odd"}


def test_an_address_opens_the_brokers_of_a_cluster(page: Path) -> None:
    assert re.search(r'<details id="cluster-1" open', visit(page, "#cluster-1").document)
    assert not re.search(r"<details[^>]* open", visit(page).document)


def test_nothing_is_complained_of_and_nothing_is_fetched(page: Path) -> None:
    seen = visit(page)
    assert seen.console == ()
    assert seen.requests == frozenset()
    assert "<title>Fleet page · 2026-11-21 03:00 UTC</title>" in seen.document


def test_the_policy_stops_what_would_be_fetched_or_run(page: Path) -> None:
    smuggled = '<img src="http://127.0.0.1:9/x"><script>document.title = "taken"</script></main>'
    text = page.read_text(encoding="utf-8").replace("</main>", smuggled)
    page.write_text(text, encoding="utf-8")
    seen = visit(page)
    assert len(seen.console) == 2
    assert seen.requests == frozenset()
    assert "<title>taken" not in seen.document

    page.write_text(re.sub(r"<meta http-equiv[^>]*>", "", text), encoding="utf-8")
    unguarded = visit(page)
    assert unguarded.requests == {"http://127.0.0.1:9/x"}
    assert "<title>taken" in unguarded.document
