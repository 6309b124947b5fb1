"""The runs as a picture for a terminal: one row a run, a block a phase, a mark for its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loopdetect.model import Outcome, Phase, Report, Run
from loopdetect.render.duration import spoken
from loopdetect.render.marks import (
    CUT_MARK,
    FILL,
    LETTERS,
    OUTCOME_MARKS,
    OUTCOME_WORDS,
    PHASE_COLORS,
    READY_MARK,
)
from loopdetect.render.options import RenderOptions
from loopdetect.render.paint import BOLD, DIM, GREEN, OUTCOME_COLORS, Paint, painter
from loopdetect.render.segments import Alike, Chart, Lane, Segment, chart, ticks, worth_drawing
from loopdetect.render.width import columns, wrap

LANES: Final = 12
# A pipe has no width; this much fits most places that text is pasted into.
WIDTH: Final = 100
NARROWEST: Final = 24
LABEL_ROOM: Final = 13


@dataclass(frozen=True, slots=True)
class _Item:
    """What begins at one cell of a row: a phase, which fills the cells to the next, or a mark."""

    text: str
    code: str
    at: float
    until: float = 0.0
    fill_code: str = ""

    @property
    def fills(self) -> bool:
        """True for a phase that takes time."""
        return bool(self.fill_code)


def timeline(report: Report, options: RenderOptions) -> list[str]:
    """Return the picture's lines, none where one run tells too little to draw."""
    if not worth_drawing(report.runs):
        return []
    picture = chart(report.runs, None if options.detail > 0 else LANES)
    return list(_lines(picture, [_label(lane, options.ascii) for lane in picture.lanes], options))


def two_lanes(a: Run, b: Run, options: RenderOptions) -> list[str]:
    """Return the picture of two runs, A and B, that may be from two logs."""
    return list(_lines(chart((a, b), None), ["A", "B"], options))


def _lines(picture: Chart, labels: list[str], options: RenderOptions) -> Iterator[str]:
    paint, width = painter(options.color), options.width or WIDTH
    gutter = max(map(columns, [*labels, "run"])) + 2
    lengths = [_length(lane, picture) for lane in picture.lanes]
    room = min(max(map(columns, lengths), default=0), LABEL_ROOM)
    cells = max(width - gutter - room - 4, NARROWEST)
    yield ""
    yield f"{paint('Timeline', BOLD)} {_scale(picture)}"
    yield "  " + paint(f"{'run':>{gutter - 2}}  {_axis(picture, cells)}", DIM)
    for lane, label, length in zip(picture.lanes, labels, lengths, strict=True):
        head = f"  {' ' * (gutter - 2 - columns(label))}{label}  "
        if isinstance(lane, Alike):
            lines = wrap(lane.words if not options.ascii else _plain(lane.words), cells + room + 2)
            yield head + lines[0]
            yield from (" " * columns(head) + line for line in lines[1:])
            continue
        row, used = _row(lane, picture, cells, options, paint)
        yield f"{head}{row}{' ' * (cells - used)}  {length}".rstrip()
    yield from (f"  {line}" for line in _legend(picture, options.ascii, width - 2))


def _label(lane: Lane | Alike, ascii_only: bool) -> str:
    label = lane.label if isinstance(lane, Alike) else str(lane.run.number)
    return _plain(label) if ascii_only else label


def _plain(text: str) -> str:
    return text.translate({ord("–"): "-", ord("…"): "...", ord("×"): "x"})


def _length(lane: Lane | Alike, picture: Chart) -> str:
    if isinstance(lane, Alike):
        return ""
    if picture.by_lines:
        return f"{lane.length:.0f} lines"
    return spoken(lane.length) if lane.length is not None else "no times"


def _scale(picture: Chart) -> str:
    if picture.by_lines:
        return "(by lines: the log has no times)"
    return "(time from each run's start)"


def _axis(picture: Chart, cells: int) -> str:
    line = ""
    for at, label in ticks(picture.extent, max(cells // 12, 1), picture.by_lines):
        place = min(round(at / picture.extent * (cells - 1)), cells - 1)
        if place + 1 + len(label) <= cells:
            line = line.ljust(place) + "|" + label
    return line


def _row(
    lane: Lane, picture: Chart, cells: int, options: RenderOptions, paint: Paint
) -> tuple[str, int]:
    """Return one run's blocks and marks, and how many columns they take."""
    items = _items(lane, picture.extent, options)
    if not items:
        return "", 0
    scale = (cells - 1) / picture.extent
    starts: list[int] = []
    for item in items:
        earliest = starts[-1] + 1 if starts else 0
        starts.append(max(earliest, round(item.at * scale)))
    limit = cells
    for place in range(len(items) - 1, -1, -1):
        starts[place] = max(min(starts[place], limit - 1), 0)
        limit = starts[place]
    row, used = "", 0
    fill = FILL[options.ascii]
    for place, item in enumerate(items):
        last = place + 1 == len(items)
        end = starts[place] + 1 if last else starts[place + 1]
        row += " " * (starts[place] - used)
        row += paint(item.text, item.code)
        used = starts[place] + 1
        rest = fill * (end - used) if item.fills else ""
        # In the colour of its own ground the fill is a block to the eye, and still there to copy.
        row += paint(rest, item.fill_code) if rest else ""
        used += len(rest)
    return row, used


def _items(lane: Lane, extent: float, options: RenderOptions) -> list[_Item]:
    if lane.length is None and not lane.segments:
        return []
    items = [_block(segment) for segment in lane.segments]
    end = lane.length if lane.length is not None else max((item.until for item in items), default=0)
    _mark_ready(items, lane, options)
    shown = [item for item in items if item.at <= extent] or items[:1]
    if end > extent * 1.001:
        shown.append(_Item(CUT_MARK[options.ascii], DIM, extent))
    outcome = lane.run.outcome
    mark = OUTCOME_MARKS[outcome][options.ascii]
    return [*shown, _Item(mark, OUTCOME_COLORS[outcome], end)]


def _mark_ready(items: list[_Item], lane: Lane, options: RenderOptions) -> None:
    """Put the mark before serving, else where the time falls: then that phase goes on behind it."""
    at = lane.ready_at
    if at is None:
        return
    mark = _Item(READY_MARK[options.ascii], GREEN, at)
    phases = [segment.phase for segment in lane.segments]
    if Phase.SERVING in phases:
        items.insert(phases.index(Phase.SERVING), mark)
        return
    place = next((n for n, item in enumerate(items) if item.at >= at), len(items))
    items.insert(place, mark)
    before = items[place - 1] if place else None
    if before is not None and before.fills and before.until > at:
        fill = FILL[options.ascii]
        rest = _Item(fill, before.fill_code, at, before.until, before.fill_code)
        items.insert(place + 1, rest)


def _block(segment: Segment) -> _Item:
    ground = PHASE_COLORS[segment.phase]
    fill = f"{ground - 10};{ground}" if segment.known else ""
    return _Item(LETTERS[segment.phase], f"30;{ground}", segment.start, segment.end, fill)


def _legend(picture: Chart, ascii_only: bool, width: int) -> list[str]:
    lanes = picture.drawn
    phases = {segment.phase for lane in lanes for segment in lane.segments}
    said = [f"{LETTERS[phase]} {phase.value}" for phase in Phase if phase in phases]
    if any(lane.ready_at is not None for lane in lanes):
        said.append(f"{READY_MARK[ascii_only]} ready")
    outcomes = {lane.run.outcome for lane in lanes}
    said += [
        f"{OUTCOME_MARKS[outcome][ascii_only]} {OUTCOME_WORDS.get(outcome, outcome.value)}"
        for outcome in Outcome
        if outcome in outcomes
    ]
    if picture.cut:
        said.append(f"{CUT_MARK[ascii_only]} goes on")
    lines = [""]
    for word in said:
        joined = f"{lines[-1]}   {word}" if lines[-1] else word
        if columns(joined) <= width or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines
