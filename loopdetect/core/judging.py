"""What a finished traceback means: a failure, a cascade, a stop, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from loopdetect.core.block import LISTS, Block, Raised
from loopdetect.core.event import Failure
from loopdetect.core.line import TEXT_SHOWN
from loopdetect.core.rules import Chain, Match
from loopdetect.core.where import Traced
from loopdetect.model import Kind, Phase


@dataclass(frozen=True, slots=True)
class Judgement:
    """One thing that a traceback tells; `second` is said beside the failure of the same traceback."""

    kind: Kind
    line: int
    text: str
    match: Match | None = None
    failure: Failure | None = None
    second: bool = False
    until: int = 0
    time: float | None = None


def judge(block: Block, chain: Chain, exceptions: Mapping[str, str]) -> list[Judgement]:
    """Judge a traceback; `exceptions` names the reason of each exception type that no rule knows."""
    judged = [(raised, *_meaning(raised, chain)) for raised in block.chain]
    last, last_match, _ = judged[-1]
    kinds = {match.rule.kind for _, match, _ in judged if match}
    if Kind.HARMLESS in kinds or Kind.REQUEST_ERROR in kinds:
        return []
    if _is(last_match, Kind.STOP):
        return [Judgement(Kind.STOP, last.line, last.text, last_match, time=block.time)]
    failures = [
        _as_failure(raised, match, at, block.panic, exceptions)
        for raised, match, at in judged
        if not _is(match, Kind.CASCADE)
    ]
    # The first exception of a chain is its root; one that a rule knows says more than one it does not.
    chosen = (
        next((f for f in failures if not f.weak and not f.vague), None)
        or next((f for f in failures if not f.weak and not _says_less(f, judged, failures)), None)
        or next((f for f in failures if f.weak), None)
        or next(iter(failures), None)
    )
    found = []
    if chosen is not None:
        found.append(
            Judgement(
                Kind.FAILURE,
                chosen.line,
                chosen.text,
                failure=chosen,
                until=block.last_line,
                time=block.time,
            )
        )
    cascade = next((match for _, match, _ in judged if _is(match, Kind.CASCADE)), None)
    if cascade is not None:
        found.append(
            Judgement(
                Kind.CASCADE, last.line, last.text, cascade, second=bool(found), time=block.time
            )
        )
    return found


def failure_of(number: int, text: str, match: Match) -> Failure:
    """Return the candidate for a cause that a failure rule makes of a line."""
    rule = match.rule
    return Failure(
        number,
        text.strip()[:TEXT_SHOWN],
        rule.reason or "unknown",
        fatal=rule.fatal,
        weak=rule.weak,
        outside=rule.outside,
        cancels_ready=rule.cancels_ready,
        phase=rule.phase,
        while_serving=rule.while_serving,
        hint=rule.hint,
    )


def _meaning(raised: Raised, chain: Chain) -> tuple[Match | None, tuple[int, str]]:
    """Return the rule for an exception, and the line that says it best."""
    own = chain.match(raised.text, None)
    lists = LISTS in raised.text  # the heading of a list that tells what is wrong
    weak = own is not None and own.rule.weak  # its lines may tell what it is a consequence of
    if own is None or lists or weak or own.rule.reason in ("bad-config", "weights-mismatch"):
        for number, text in raised.rest:
            match = chain.match(text, None)
            if match is not None and _is(match, Kind.FAILURE) and not (weak and match.rule.weak):
                return match, (number, text)
    return own, (raised.line, raised.text)


def _as_failure(
    raised: Raised,
    match: Match | None,
    at: tuple[int, str],
    panic: bool,
    exceptions: Mapping[str, str],
) -> Failure:
    if match is not None and match.rule.kind is Kind.FAILURE:
        known = failure_of(at[0], at[1], match)
        return known if raised.phase is None else _traced(known, raised.phase)
    reason = "abort" if panic else exceptions.get(raised.type, "python-exception")
    return Traced(raised.line, raised.text[:TEXT_SHOWN], reason, vague=True, at=raised.phase)


def _traced(known: Failure, at: Phase) -> Failure:
    said = {field.name: getattr(known, field.name) for field in fields(known)}
    return Traced(**said, at=at)


def _says_less(
    failure: Failure,
    judged: list[tuple[Raised, Match | None, tuple[int, str]]],
    failures: list[Failure],
) -> bool:
    """Is this a bare name, which a known symptom of the same traceback puts into words?"""
    wordless = any(raised.line == failure.line and raised.wordless for raised, _, _ in judged)
    return wordless and any(f.weak and f.line > failure.line for f in failures)


def _is(match: Match | None, kind: Kind) -> bool:
    return match is not None and match.rule.kind is kind
