"""Runs a command and prints what it took: status, CPU seconds, wall seconds, peak memory in KiB."""

import os
import sys
import time

out, *command = sys.argv[1:]
begin = time.perf_counter()
child = os.fork()
if not child:
    target = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.execvp(command[0], command)
_, status, used = os.wait4(child, 0)
wall = time.perf_counter() - begin
print([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, wall, used.ru_maxrss])  # noqa: T201
