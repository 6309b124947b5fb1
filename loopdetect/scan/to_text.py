"""Groups for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loopdetect.render.escape import visible
from loopdetect.render.options import RenderOptions
from loopdetect.render.paint import BOLD, DIM, RED, STATE_COLORS, Paint, painter
from loopdetect.render.to_text import grid
from loopdetect.render.width import columns, cut, wrap
from loopdetect.scan import words
from loopdetect.scan.groups import Group
from loopdetect.scan.words import Shown

RIGHT: Final = frozenset({"logs", "runs", "crashes"})
# Columns that a narrow terminal can do without, the first to go first.
DISPENSABLE: Final = ("runs", "first seen", "now", "last seen", "crashes")
UNCUT: Final = 400


def to_text(told: Shown, options: RenderOptions) -> str:
    """Return the table of groups, each with an example and a hint, and the states."""
    return "\n".join(_lines(told, options)) + "\n"


def _lines(told: Shown, options: RenderOptions) -> Iterator[str]:
    paint = painter(options.color)
    if told.groups:
        yield paint("Failures, by the logs that they hit", BOLD)
        yield from _table(told.groups, options, paint)
        more = words.rest(told)
        if more:
            yield f"  … {more}"
        yield ""
    yield _states(told, paint)


def _table(groups: tuple[Group, ...], options: RenderOptions, paint: Paint) -> Iterator[str]:
    cells = words.cells(groups)
    lines = grid(cells, RIGHT)
    for name in DISPENSABLE:
        if options.width is None or max(map(columns, lines)) + 2 <= options.width:
            break
        del cells[name]
        lines = grid(cells, RIGHT)
    yield "  " + paint(cut(lines[0], options.width and options.width - 2), DIM)
    for group, line in zip(groups, lines[1:], strict=True):
        yield "  " + cut(line.rstrip(), options.width and options.width - 2)
        if options.detail >= 0:
            yield from _details(group, options, paint)


def _details(group: Group, options: RenderOptions, paint: Paint) -> Iterator[str]:
    everything = options.detail > 0
    for example in group.examples if everything else group.examples[:1]:
        before = f"    {words.place(example)}: "
        room = UNCUT if options.width is None else max(options.width - columns(before), 30)
        yield before + paint(cut(visible(words.cause(example)), room), RED)
    if everything and group.logs > len(group.examples):
        yield f"    … {group.logs - len(group.examples):,} more"
    if group.failure.hint:
        yield from wrap(f"Hint: {visible(group.failure.hint)}", options.width, "    ")
    if everything and group.failure.fingerprint:
        yield f"    Fingerprint: {group.failure.fingerprint}"


def _states(told: Shown, paint: Paint) -> str:
    counts = told.tally.states
    said = ", ".join(
        f"{counts[state]:,} {paint(state.value, STATE_COLORS[state])}"
        for state in words.WORST_FIRST
        if counts[state]
    )
    read = words.logs_read(told.tally)
    return f"{read}: {said}" if said else read
