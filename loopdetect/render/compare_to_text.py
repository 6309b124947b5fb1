"""Two starts side by side, for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loopdetect.compare import Comparison, Side
from loopdetect.render import compare_words, figures
from loopdetect.render.escape import visible
from loopdetect.render.options import RenderOptions
from loopdetect.render.paint import BOLD, DIM, RED, YELLOW, Paint, painter
from loopdetect.render.timeline import two_lanes
from loopdetect.render.to_text import UNCUT, grid
from loopdetect.render.width import cut, wrap


def compare_to_text(comparisons: Sequence[Comparison], options: RenderOptions) -> str:
    """Return one block of text a comparison."""
    blocks = ("\n".join(_block(comparison, options)) for comparison in comparisons)
    return "\n\n".join(blocks) + "\n"


def _block(found: Comparison, options: RenderOptions) -> Iterator[str]:
    paint, width = painter(options.color), options.width
    yield from _side("A", found.a, paint, width)
    yield from _side("B", found.b, paint, width)
    if found.parting:
        yield ""
        words = wrap(visible(found.parting.sentence), width, "  ")
        yield f"{paint('They part', BOLD)} (line {found.parting.line} of B)"
        yield from words
    yield from two_lanes(found.a.run, found.b.run, options)
    yield from _arguments(found, width, paint)
    yield from _phases(found, paint)
    yield from _errors(found, width, paint)
    for note in found.notes:
        yield ""
        yield from wrap(f"Note: {visible(note)}", width)


def _side(name: str, side: Side, paint: Paint, width: int | None) -> Iterator[str]:
    source = cut(figures.source_name(side.report), width and width // 2)
    yield f"{name}  {paint(source, BOLD)}: {figures.server_name(side.report)}"
    yield from wrap(compare_words.side_line(side), width, "   ")


def _arguments(found: Comparison, width: int | None, paint: Paint) -> Iterator[str]:
    yield ""
    yield paint("Arguments that differ", BOLD)
    differing = compare_words.by_will(found)
    line = compare_words.arguments_line(found)
    if line:
        yield f"  {line}"
    room = max((width or 100) // 3, 16)
    if differing:
        cells = {
            "argument": [cut(visible(change.name), room) for change in differing],
            "A": [cut(compare_words.value(change, change.a), room) for change in differing],
            "B": [cut(compare_words.value(change, change.b), room) for change in differing],
        }
        yield from _table(cells, paint)
    chance = compare_words.by_chance(found)
    if chance:
        yield from wrap(f"Also differ, as in every start: {visible(chance)}", width, "  ")
    memory = compare_words.memory_line(found)
    if memory:
        yield ""
        yield from wrap(memory, width)


def _phases(found: Comparison, paint: Paint) -> Iterator[str]:
    if not found.phases:
        return
    cells = {
        "phase": [change.phase.value for change in found.phases],
        "A": [compare_words.took(change.a_line, change.a_s) for change in found.phases],
        "B": [compare_words.took(change.b_line, change.b_s) for change in found.phases],
        "": [compare_words.phase_note(found, change) for change in found.phases],
    }
    yield ""
    yield paint("Phases", BOLD)
    lines = list(_table(cells, paint))
    yield lines[0]
    for change, line in zip(found.phases, lines[1:], strict=True):
        yield paint(line, YELLOW) if change.slower else line


def _errors(found: Comparison, width: int | None, paint: Paint) -> Iterator[str]:
    yield ""
    yield paint("Error-like lines that only B has", BOLD)
    if not found.errors:
        yield "  none"
        return
    number = max(len(str(item.line)) for item in found.errors)
    for item in found.errors:
        times = f"{item.count} ×  " if item.count > 1 else ""
        gutter = f"  line {item.line:>{number}}  {times}"
        room = UNCUT if width is None else max(width - len(gutter), 20)
        yield gutter + paint(cut(visible(" ".join(item.text.split())), room), RED)
    if found.errors_left:
        yield f"  … {found.errors_left} more"


def _table(cells: dict[str, list[str]], paint: Paint) -> Iterator[str]:
    lines = grid(cells, frozenset())
    yield "  " + paint(lines[0].rstrip(), DIM)
    yield from (f"  {line}".rstrip() for line in lines[1:])
