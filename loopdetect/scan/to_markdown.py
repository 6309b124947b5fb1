"""Groups for a pull request, a chat or a job summary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loopdetect.render.escape import code_span, markdown
from loopdetect.render.options import RenderOptions
from loopdetect.render.width import cut
from loopdetect.scan import words
from loopdetect.scan.groups import Group
from loopdetect.scan.words import Shown

LINE_CUT: Final = 400


def to_markdown(told: Shown, options: RenderOptions) -> str:
    """Return a heading, a table of groups, and an example of each."""
    return "\n".join(_lines(told, options)) + "\n"


def _lines(told: Shown, options: RenderOptions) -> Iterator[str]:
    said = words.states(told.tally.states)
    yield f"## {words.logs_read(told.tally)}" + (f": {said}" if said else "")
    if not told.groups:
        return
    cells = {"#": [str(number) for number in range(1, len(told.groups) + 1)]}
    cells |= words.cells(told.groups)
    yield ""
    yield f"| {' | '.join(cells)} |"
    yield "|" + " --- |" * len(cells)
    for row in zip(*cells.values(), strict=True):
        yield f"| {' | '.join(map(markdown, row))} |"
    more = words.rest(told)
    if more:
        yield ""
        yield markdown(more)
    if options.detail < 0:
        return
    yield ""
    for number, group in enumerate(told.groups, start=1):
        yield from _group(number, group, options)


def _group(number: int, group: Group, options: RenderOptions) -> Iterator[str]:
    hint = f" *{markdown(group.failure.hint)}*" if group.failure.hint else ""
    for place, example in enumerate(group.examples if options.detail > 0 else group.examples[:1]):
        margin = f"{number}. " if place == 0 else " " * len(f"{number}. ") + "- "
        text = code_span(cut(words.cause(example), LINE_CUT))
        yield f"{margin}{code_span(words.place(example))}: {text}{hint if place == 0 else ''}"
