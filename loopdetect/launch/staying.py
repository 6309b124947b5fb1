"""Staying with a server that is ready, until it ends."""

from __future__ import annotations

import math
from typing import Final

from loopdetect.core.fusion import Fused, Process
from loopdetect.launch.child import Child
from loopdetect.live.judge import ENDINGS, Decision, Ending, Judge, Seen, Terms
from loopdetect.live.loop import STEP_S, Wait

# Bytes are passed on as they come; what they mean is looked at less often.
LOOK_S: Final = 5.0
OVER: Final = (Process.GONE, Process.STOPPED)


class UntilGone(Judge):
    """Decides when the process is gone, whatever the log says before that."""

    def __init__(self, called: float, ready_at: float) -> None:
        super().__init__(Terms(timeout=math.inf), called)
        self._ready_at = ready_at

    def _ending(self, fused: Fused, seen: Seen, now: float) -> Ending | None:
        if seen.process is None or seen.process.process not in OVER:
            return None
        return ENDINGS.get(fused.state, Ending.STOPPED)


def stay(wait: Wait, child: Child) -> Decision:
    """Return how the server ended; raises SourceError."""
    clock = wait.clock
    judge = UntilGone(wait.called, clock.now())
    looked = clock.now()
    while child.alive:
        if clock.now() - looked >= LOOK_S:
            wait.step(judge)
            looked = clock.now()
        else:
            wait.read()
        clock.sleep(STEP_S)
    return wait.go_on(judge)
