"""Reports made by hand, for everything that only shows them."""

from __future__ import annotations

from dataclasses import replace

from loopdetect.model import (
    Cause,
    Certainty,
    Evidence,
    Exit,
    Outcome,
    Phase,
    PhaseSpan,
    Progress,
    Report,
    Run,
    Server,
    State,
    Verdict,
)

START = 1772359200.0  # 2026-03-01 10:00:00
KV = Cause(
    line=310,
    text="ValueError: 21.00 GiB KV cache is needed, which is larger than the available (13.5 GiB)",
    reason="kv-cache-too-small",
    hint="Lower the maximum context length, or use more GPUs.",
    certainty=Certainty.CERTAIN,
    fingerprint="f-kv",
    before=('  File "worker.py", line 12, in check', "    raise ValueError("),
    after=("RuntimeError: Engine core failed. See root cause above.",),
)
PORT = Cause(
    line=12,
    text="OSError: [Errno 98] Address already in use",
    reason="port-in-use",
    hint="Stop the other process.",
    certainty=Certainty.LIKELY,
    fingerprint="f-port",
)
SHARDS = Progress("Loading checkpoint shards", 63, 64, 13.0, 0.2, 61, 126)


def make_run(number: int, **changes: object) -> Run:
    """One crashed run of 530 s; `changes` are fields of Run."""
    first = 1 + (number - 1) * 311
    started = START + (number - 1) * 560
    run = Run(
        number=number,
        first_line=first,
        last_line=first + 310,
        started_at=started,
        ended_at=started + 530,
        duration_s=530.0,
        phase=Phase.KV_CACHE,
        ready_after_s=None,
        ready=False,
        outcome=Outcome.CRASHED,
        exit=Exit(code=1),
        cause=replace(KV, line=first + 309),
        fingerprint="f-kv",
        phases=(
            PhaseSpan(Phase.CONFIG, first, started, 20.0),
            PhaseSpan(Phase.LOAD_WEIGHTS, first + 59, started + 20, 488.25),
            PhaseSpan(Phase.KV_CACHE, first + 200, started + 508.25, None),
        ),
        progress=(SHARDS,),
    )
    return replace(run, **changes)  # type: ignore[arg-type]


def make_report(state: State, runs: tuple[Run, ...], **changes: object) -> Report:
    """A report on `server.log`; `changes` are fields of Verdict or Report."""
    verdict = Verdict(
        state=state,
        certainty=Certainty.CERTAIN,
        summary=f"vLLM is {state.value}.",
        restarts=len(runs) - 1,
        crashes=sum(run.outcome is Outcome.CRASHED for run in runs),
        ready_seen=any(run.ready for run in runs),
        phase=runs[-1].phase if runs else Phase.UNKNOWN,
        cause=runs[-1].cause if runs else None,
        first_cause=None,
        evidence=(Evidence(1, "start", "vLLM API server version 0.32.0"),),
        since=START,
        since_line=1,
    )
    of_report = {key: value for key, value in changes.items() if hasattr(Report, key)}
    of_verdict = {key: value for key, value in changes.items() if key not in of_report}
    report = Report(
        source="server.log",
        stream=None,
        kind="log",
        lines=1204,
        bytes=88123,
        server=Server("vllm", "vLLM", "0.32.0"),
        verdict=replace(verdict, **of_verdict),  # type: ignore[arg-type]
        runs=runs,
        clock="wall",
    )
    return replace(report, **of_report)  # type: ignore[arg-type]


CRASH_LOOP = make_report(
    State.CRASH_LOOPING,
    tuple(make_run(number) for number in range(1, 5)),
    summary="vLLM was started 4 times and died each time in kv-cache: no room for the KV cache.",
)
LONG_LOOP = make_report(
    State.CRASH_LOOPING,
    (
        make_run(1, cause=PORT, fingerprint="f-port", phase=Phase.BIND),
        *(make_run(number) for number in range(2, 190)),
    ),
    first_cause=PORT,
)
READY = make_report(
    State.READY,
    (
        make_run(
            1,
            outcome=Outcome.READY,
            ready=True,
            ready_after_s=431.0,
            phase=Phase.SERVING,
            cause=None,
            fingerprint=None,
            ended_at=None,
            exit=Exit(),
            progress=(replace(SHARDS, done=64.0),),
        ),
    ),
    cause=None,
    evidence=(
        Evidence(1, "start", "vLLM API server version 0.32.0"),
        Evidence(300, "ready", "Application startup complete."),
    ),
)
UNKNOWN = make_report(
    State.UNKNOWN,
    (),
    source="-",
    server=Server(None, "unknown server", None),
    summary="Nothing in the log says which server wrote it.",
    restarts=None,
    ready_seen=None,
    evidence=(),
    since=None,
    since_line=None,
    certainty=Certainty.SUSPECTED,
)
TRANSCRIPT = make_report(
    State.CRASH_LOOPING,
    (make_run(1, started_at=None, ended_at=None, duration_s=None, cause=None, phases=()),),
    kind="transcript",
    certainty=Certainty.SUSPECTED,
    restarts=3,
    cause=None,
    since=None,
    notes=("A log that did not grow looks the same: compare the file's size.",),
)
HOSTILE_TEXT = "\x1b]0;owned\x07\x1b[31m`x` | <b>@all</b> \u202egnp.exe \udcff\x9b2J \U000e0041"
HOSTILE = make_report(
    State.CRASHED,
    (make_run(1, cause=replace(KV, line=310, text=HOSTILE_TEXT, reason="bad\x1bcode")),),
    source="evil\x1b[2J\n.log",
    stream="a\x07b",
    server=Server("vllm", "vLLM", "1\x1b[0m"),
    summary=f"It died: {HOSTILE_TEXT}",
    evidence=(Evidence(1, "start", HOSTILE_TEXT),),
    notes=(HOSTILE_TEXT,),
)

SAMPLES = {
    "crash-loop": CRASH_LOOP,
    "long-loop": LONG_LOOP,
    "ready": READY,
    "unknown": UNKNOWN,
    "transcript": TRANSCRIPT,
    "hostile": HOSTILE,
}
