"""Act every danger out and write docs/explanation/dangers.md: `make dangers`."""

from __future__ import annotations

import sys

from dangers.page import PAGE, act_out, list_dangers, name_danger, render_page
from reconciler.sandbox.cluster import start_cluster


def main() -> None:
    """Write the page, telling on stderr how far it is."""
    rows = {}
    with start_cluster(brokers=3, racks=3) as cluster:
        for danger in list_dangers():
            sys.stderr.write(f"{name_danger(danger)}\n")
            rows[name_danger(danger)] = act_out(danger, cluster)
    PAGE.write_text(render_page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
