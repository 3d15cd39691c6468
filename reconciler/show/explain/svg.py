"""An SVG document: the few shapes of a picture, and their style in light and dark.

Colours are those of GitHub's own pages. No scripts, no variables, no fonts from elsewhere: every
SVG viewer shows this.
"""

from __future__ import annotations

from reconciler.svg import Drawing, spell_text

STYLE = """
text{font:12px ui-sans-serif,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#1f2328}
.h{font-size:16px;font-weight:600}.m{fill:#59636e}.s{font-size:11px}.t{font-size:8px}.e{text-anchor:end}
.c{text-anchor:middle}.g{font-weight:600}.card{fill:#fff;stroke:#d1d9e0}.p{fill:#f6f8fa}
.band{fill:#0969da;fill-opacity:.07}.x{fill:#59636e;fill-opacity:.1}
.l{fill:#818b98;stroke:#818b98}.f{fill:none;stroke:#818b98}
.l.n{fill:#0969da;stroke:#0969da}.f.n{fill:none;stroke:#0969da}
.old{fill:#afb8c1}.add{fill:#0969da}.even{stroke:#59636e;stroke-dasharray:2 3}
.whisker{stroke:#818b98}
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.m{fill:#9198a1}
.card{fill:#0d1117;stroke:#3d444d}.p{fill:#151b23}.band{fill:#4493f8;fill-opacity:.12}
.x{fill:#9198a1;fill-opacity:.12}.l{fill:#656c76;stroke:#656c76}.f{stroke:#656c76}
.l.n{fill:#4493f8;stroke:#4493f8}.f.n{stroke:#4493f8}.old{fill:#656c76}.add{fill:#4493f8}
.even{stroke:#9198a1}.whisker{stroke:#656c76}}
""".replace("\n", "")


class Sheet(Drawing):
    """A standalone picture. Units: pixels."""

    def finish(self, width: float, height: float, title: str, description: str) -> str:
        """Return the document, its shapes on a card with a frame."""
        frame = f'<rect class="card" x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
                f'viewBox="0 0 {width:g} {height:g}" role="img" aria-labelledby="title desc">',
                f'<title id="title">{spell_text(title)}</title>',
                f'<desc id="desc">{spell_text(description)}</desc>',
                f"<style>{STYLE}</style>",
                f'{frame} rx="8"/>',
                *self.shapes,
                "</svg>\n",
            ]
        )
