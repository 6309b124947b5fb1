"""The program that runs on the host: a POSIX shell that answers requests, line by line.

How this works: it is sent on standard input, so neither the login shell nor the host's process list
sees the path. Each request is a line of numbers and gets one complete answer. Bytes of the log are
sent as a block whose length the request gave, filled up with NUL bytes if there are fewer, and the
line behind the block tells how many were real: nothing in a log can pass for a notice. The open file
is descriptor 3, so what was written to a log just before it was renamed is still read.
"""

from __future__ import annotations

from typing import Final

from loopdetect.remote.place import shell_word

# The words before the first answer: whatever the login shell says on its own stands before them.
MARKER: Final = "loopdetect-{token}-begins"

_PROGRAM: Final = r"""
set -f
LC_ALL=C; export LC_ALL
exec 4>&1
f=@LOG@
g=@PID_FILE@
how=ls
case $(stat -L -c %.Y / 2>/dev/null) in [0-9]*.[0-9]*) how=gnu ;; *)
  case $(stat -L -c %Y / 2>/dev/null) in [0-9]*) how=plain ;; *)
    case $(stat -L -f %m / 2>/dev/null) in [0-9]*) how=bsd ;; esac ;; esac ;; esac
facts() {
  if [ ! -e "$f" ]; then echo none; return; fi
  if [ -d "$f" ]; then echo folder; return; fi
  if [ ! -f "$f" ]; then echo special; return; fi
  if [ ! -r "$f" ]; then echo denied; return; fi
  case $how in
    gnu) s=$(stat -L -c '%d:%i %s %.Y' "$f" 2>/dev/null) ;;
    plain) s=$(stat -L -c '%d:%i %s %Y' "$f" 2>/dev/null) ;;
    bsd) s=$(stat -L -f '%d:%i %z %m' "$f" 2>/dev/null) ;;
    *) set -- $(ls -diL "$f" 2>/dev/null) -
       n=$( { wc -c <"$f"; } 2>/dev/null )
       s="$1 $((n + 0)) -" ;;
  esac
  case $s in
    [0-9]*) printf 'file %s %s\n' "$s" "$(date +%s.%N)" ;;
    *) echo none ;;
  esac
}
process() {
  t=$( { cat "/proc/$1/stat"; } 2>/dev/null )
  if [ -n "$t" ]; then
    u=$( { cat /proc/uptime; } 2>/dev/null )
    h=$(getconf CLK_TCK 2>/dev/null) || h=100
    set -- ${t##*") "}
    echo "ticks $1 ${20} ${u%% *} $h"
    return
  fi
  if [ ! -e /proc/self/stat ]; then
    t=$(ps -o stat= -o lstart= -p "$1" 2>/dev/null)
    if [ -n "$t" ]; then echo stamp $t; return; fi
  fi
  t=$( { kill -0 "$1"; } 2>&1 ) && { echo alive; return; }
  case $t in *ermitted*) echo alive ;; *) echo gone ;; esac
}
printf '\n%s\n' '@MARKER@'
while read -r verb a b c d e; do
  case $verb in
    stat) facts ;;
    open)
      exec 3<&-
      { command exec 3<"$f"; } 2>/dev/null
      if [ "$a" -gt 0 ]; then dd bs=4096 skip="$a" count=0 <&3 2>/dev/null; fi
      if [ "$b" -gt 0 ]; then dd bs=1 skip="$b" count=0 <&3 2>/dev/null; fi
      facts ;;
    read)
      h=
      if [ "$b" -gt 0 ]; then
        h=$( { { dd bs=1 count="$e" <"$f"; dd bs=1 skip="$a" count="$b" <"$f"
             } | od -An -v -tx1 | tr -d ' \n\t'; } 2>/dev/null )
      fi
      echo "before $h"
      r=$( { { dd bs="$c" count="$d" <&3 2>&5
               dd if=/dev/zero bs="$c" count="$d" 2>/dev/null
             } | head -c $((c * d)) >&4; } 5>&1 )
      echo "records ${r%% *}"
      facts ;;
    process) process "$a" ;;
    pid)
      n=
      if [ -r "$g" ]; then { read -r n <"$g"; } 2>/dev/null; fi
      case $n in '' | *[!0-9]*) echo none ;; *) echo "pid $n" ;; esac ;;
    *) exit 0 ;;
  esac
done
"""


def program(log: str, pid_file: str, token: str) -> bytes:
    """Return the program for one connection; `token` is letters and digits."""
    parts = {
        "@LOG@": shell_word(log),
        "@PID_FILE@": shell_word(pid_file) if pid_file else "''",
        "@MARKER@": MARKER.format(token=token),
    }
    head, *pieces = _PROGRAM.lstrip().split("@")
    text = [head]
    for piece in pieces:
        text.append(parts.get(f"@{piece}@", piece))
    return "".join(text).encode("utf-8", "surrogateescape")


def starter(size: int) -> str:
    """Return the remote command that runs a program of `size` bytes from standard input.

    A line without quotes inside quotes: every login shell reads it alike. `dd` takes no byte more
    than it is told, so the requests that follow are left for the program.
    """
    return f"exec sh -c 'eval \"$(dd bs=1 count={size} 2>/dev/null)\"'"
