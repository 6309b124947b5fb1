"""Two starts side by side as one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loopdetect.compare import Comparison
from loopdetect.render import compare_words, figures, html_timeline
from loopdetect.render.html_page import page
from loopdetect.render.options import RenderOptions
from loopdetect.render.segments import chart


def compare_to_html(comparisons: Sequence[Comparison], options: RenderOptions) -> str:
    """Return one page for all comparisons."""
    first = comparisons[0]
    names = [figures.source_name(side.report) for side in (first.a, first.b)]
    return page(
        "compare.html.j2",
        title=f"{names[0]} and {names[1]}",
        comparisons=[(number, item, _lanes(item)) for number, item in enumerate(comparisons, 1)],
        words=compare_words,
        source_name=figures.source_name,
        server_name=figures.server_name,
    )


def _lanes(found: Comparison) -> html_timeline.Timeline:
    drawn = html_timeline.timeline(chart((found.a.run, found.b.run), None))
    rows = tuple(
        replace(
            row,
            label=name,
            blocks=tuple(
                replace(block, label=f"{name}, {block.label.partition(', ')[2]}")
                for block in row.blocks
            ),
        )
        for name, row in zip("AB", drawn.rows, strict=True)
    )
    return replace(drawn, rows=rows)
