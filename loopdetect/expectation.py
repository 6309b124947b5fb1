"""Expectation files: what is to be found in a log, and where a report differs from it.

`x.log` has its expectation in `x.expect.toml`. Every value may be a list of alternatives; tables
`[stream."NAME"]` say what is expected of one stream of a log that holds several. A key is one row
of `KEYS`: how its value is read, what a report says of it, and the line to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from loopdetect import written
from loopdetect.errors import LoopdetectError
from loopdetect.model import FAILED, Certainty, Outcome, Phase, Report, State
from loopdetect.render.duration import spoken

SUFFIX: Final = ".expect.toml"
PACKED: Final = (".gz", ".xz", ".bz2", ".zst")
LOG_SUFFIXES: Final = (".log", ".txt", ".out", "")
NOTHING: Final = "none"


class ExpectationError(LoopdetectError):
    """An expectation file is wrong; the message names file and key."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One key in which a report differs from what was expected; `line` is a line of the log."""

    key: str
    expected: str
    actual: str
    line: int
    stream: str | None = None

    @property
    def message(self) -> str:
        """The difference as a sentence without its end."""
        return f"{self.key}: {self.actual}, expected {self.expected}"


Wanted = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected of a log: of all its streams, or stream by stream.

    `now` is seconds since 1970 on the log's own clock; `files` are the files of one history, oldest
    first, that the log is read together with.
    """

    path: str
    whole: Wanted = field(default_factory=dict)
    streams: Mapping[str, Wanted] = field(default_factory=dict)
    now: float | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Key:
    """One key: how to read one alternative, what a report says, whether they fit, and where."""

    read: Callable[[object], object]
    actual: Callable[[Report], object]
    line: Callable[[Report], int]
    fits: Callable[[object, object], bool] = lambda wanted, actual: bool(wanted == actual)
    show: Callable[[object], str] = str


def expectation_path(log: str) -> Path:
    """Return where the expectation of a log is: `x.log` and `x.log.gz` have `x.expect.toml`."""
    path = Path(log)
    if path.suffix in PACKED:
        path = path.with_suffix("")
    return path.with_name(path.stem + SUFFIX) if path.name else path / SUFFIX


def log_beside(expectation: str) -> Path | None:
    """Return the log that an expectation file belongs to, None if there is none."""
    stem = expectation[: -len(SUFFIX)]
    names = (stem + suffix + packed for suffix in LOG_SUFFIXES for packed in ("", *PACKED))
    return next((Path(name) for name in names if Path(name).is_file()), None)


def load_expectation(path: Path | str) -> Expectation:
    """Read an expectation file; raises ExpectationError with file, key and a suggestion."""
    import tomllib

    where = str(path)
    try:
        table = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as problem:
        raise ExpectationError(
            f"{where}: cannot be read: {problem.strerror}", "check the path and its permissions"
        ) from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ExpectationError(
            f"{where}: not valid TOML: {problem}", "write it anew: loopdetect check --update LOG"
        ) from problem
    return parse_expectation(table, where)


def parse_expectation(table: Mapping[str, Any], where: str) -> Expectation:
    """Return the expectation in a TOML table; `where` names it in errors (ExpectationError)."""
    tables = table.get("stream", {})
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        raise ExpectationError(f"{where}: stream: must be tables", 'write [stream."NAME"]')
    whole = _wanted({k: v for k, v in table.items() if k not in _OWN}, where, "")
    streams = {name: _wanted(wanted, where, f'stream."{name}".') for name, wanted in tables.items()}
    for prefix, wanted in [("", whole), *((f'stream."{n}".', w) for n, w in streams.items())]:
        if "state" not in wanted and not (prefix == "" and streams and not whole):
            raise ExpectationError(
                f"{where}: {prefix}state: is missing", f"use one of {', '.join(State)}"
            )
    return Expectation(
        where, whole, streams, _now(table.get("now"), where), _files(table.get("files"), where)
    )


def compare(expectation: Expectation, reports: Sequence[Report]) -> list[Mismatch]:
    """Return where the reports of one log differ from its expectation, in the order of its keys."""
    found: list[Mismatch] = []
    for report in reports:
        wanted = expectation.streams.get(report.stream or "", expectation.whole)
        if wanted:
            found += differences(wanted, report)
        else:
            state = report.verdict.state.value
            found.append(Mismatch("stream", NOTHING, state, state_line(report), report.stream))
    seen = {report.stream for report in reports}
    for name in expectation.streams:
        if name not in seen:
            found.append(Mismatch("stream", name, "missing", 1, name))
    return found


def differences(wanted: Wanted, report: Report) -> list[Mismatch]:
    """Return the keys of `wanted` in which one report differs."""
    found: list[Mismatch] = []
    for name, alternatives in wanted.items():
        key = KEYS[name]
        actual = key.actual(report)
        if not any(key.fits(choice, actual) for choice in alternatives):
            expected = " or ".join(key.show(choice) for choice in alternatives)
            found.append(
                Mismatch(name, expected, key.show(actual), key.line(report), report.stream)
            )
    return found


# -- the line that a difference is about


def state_line(report: Report) -> int:
    """Return the line that tells the state: the cause, else where the state began."""
    verdict = report.verdict
    if verdict.cause and verdict.state in FAILED:
        return verdict.cause.line
    return verdict.since_line or (verdict.cause.line if verdict.cause else 1)


def _cause_line(report: Report) -> int:
    cause = report.verdict.cause
    return cause.line if cause else state_line(report)


def _start_line(report: Report) -> int:
    return report.runs[-1].first_line if report.runs else 1


def _phase_line(report: Report) -> int:
    spans = [span for run in report.runs for span in run.phases]
    return next(
        (span.line for span in reversed(spans) if span.phase is report.verdict.phase),
        _start_line(report),
    )


def _ready_line(report: Report) -> int:
    ready = [item.line for item in report.verdict.evidence if item.kind == "ready"]
    return ready[-1] if ready else state_line(report)


def _server_line(report: Report) -> int:
    return report.runs[0].first_line if report.runs else 1


# -- what a report says


def _reason(report: Report) -> str:
    return report.verdict.cause.reason if report.verdict.cause else ""


def _cause_text(report: Report) -> str:
    return report.verdict.cause.text if report.verdict.cause else ""


def _time_to_ready(report: Report) -> float | str:
    ready = [run for run in report.runs if run.ready]
    if not ready:
        return "never"
    times = [run.ready_after_s for run in ready if run.ready_after_s is not None]
    return max(times) if times else "not told by the log"


def _within(wanted: object, actual: object) -> bool:
    return isinstance(wanted, float) and isinstance(actual, float | int) and actual <= wanted


def _same_outcomes(wanted: object, actual: object) -> bool:
    if not isinstance(wanted, tuple) or not isinstance(actual, tuple) or len(wanted) != len(actual):
        return False
    return all(has in choices for choices, has in zip(wanted, actual, strict=True))


# -- how a value is read; each raises ValueError with what it must be


def _word(words: Sequence[str]) -> Callable[[object], object]:
    def read(value: object) -> object:
        if value in words:
            return value
        from loopdetect.errors import suggestion

        raise ValueError(f"{value!r} is not one of its words; {suggestion(str(value), words)}")

    return read


def _text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    return value


def _count(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("must be a whole number, 0 or more")
    return value


def _flag(value: object) -> object:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _duration(value: object) -> object:
    return written.duration(value)


def _outcomes(value: object) -> object:
    choices = value if isinstance(value, list) else [value]
    return tuple(_OUTCOME(choice) for choice in choices)


_OUTCOME: Final = _word(tuple(Outcome))


def _quoted(value: object) -> str:
    return str(value) or NOTHING


def _seconds(value: object) -> str:
    return spoken(value) if isinstance(value, float | int) else str(value)


def _list(value: object) -> str:
    if not isinstance(value, tuple):
        return str(value)
    each = ("/".join(map(str, item)) if isinstance(item, tuple) else str(item) for item in value)
    return f"[{', '.join(each)}]"


KEYS: Final[Mapping[str, Key]] = {
    "state": Key(_word(tuple(State)), lambda r: r.verdict.state.value, state_line),
    "server": Key(_text, lambda r: r.server.name or "", _server_line, show=_quoted),
    "restarts": Key(
        _count,
        lambda r: r.verdict.restarts,
        _start_line,
        show=lambda value: "unknown" if value is None else str(value),
    ),
    "phase": Key(_word(tuple(Phase)), lambda r: r.verdict.phase.value, _phase_line),
    "reason": Key(_text, _reason, _cause_line, show=_quoted),
    "ready_within": Key(_duration, _time_to_ready, _ready_line, _within, _seconds),
    "ready_seen": Key(
        _flag, lambda r: r.verdict.ready_seen, _ready_line, show=lambda value: str(value).lower()
    ),
    "cause": Key(
        _text,
        _cause_text,
        _cause_line,
        lambda wanted, actual: str(wanted) in str(actual) if wanted else not actual,
        _quoted,
    ),
    "cause_line": Key(
        _count,
        lambda r: r.verdict.cause.line if r.verdict.cause else None,
        _cause_line,
        show=lambda value: NOTHING if value is None else str(value),
    ),
    "crashes": Key(_count, lambda r: r.verdict.crashes, _start_line),
    "certainty": Key(_word(tuple(Certainty)), lambda r: r.verdict.certainty.value, state_line),
    "kind": Key(_text, lambda r: r.kind, lambda r: 1),
    "outcomes": Key(
        _outcomes,
        lambda r: tuple(run.outcome.value for run in r.runs),
        _start_line,
        _same_outcomes,
        _list,
    ),
}

_OWN: Final = frozenset({"stream", "now", "files"})
# A list is one value here, not alternatives.
_LISTS: Final = frozenset({"outcomes"})


def _wanted(table: Mapping[str, Any], where: str, prefix: str) -> Wanted:
    wanted: dict[str, tuple[Any, ...]] = {}
    for name, value in table.items():
        if name not in KEYS:
            from loopdetect.errors import suggestion

            known = [*KEYS, *(() if prefix else sorted(_OWN))]
            raise ExpectationError(f"{where}: {prefix}{name}: unknown key", suggestion(name, known))
        try:
            wanted[name] = _alternatives(name, value)
        except ValueError as problem:
            raise ExpectationError(f"{where}: {prefix}{name}: {problem}") from problem
    return wanted


def _alternatives(name: str, value: object) -> tuple[Any, ...]:
    read = KEYS[name].read
    if name in _LISTS:
        if not isinstance(value, list):
            raise ValueError("must be a list, one a run")
        return (tuple(read(item) for item in value),)
    if not isinstance(value, list):
        return (read(value),)
    if not value:
        raise ValueError("must hold at least one alternative")
    return tuple(read(item) for item in value)


def _now(value: object, where: str) -> float | None:
    if value is None:
        return None
    try:
        text = value.isoformat() if hasattr(value, "isoformat") else value
        return written.moment(text)
    except ValueError as problem:
        raise ExpectationError(f"{where}: now: {problem}") from problem


def _files(value: object, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise ExpectationError(f"{where}: files: must be a list of file names")
    return tuple(value)
