"""The command `loopdetect`: subcommands, and the one place where errors become exit codes."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from loopdetect import __version__
from loopdetect.cli.complaint import complain
from loopdetect.cli.configured import default_map
from loopdetect.cli.exit_codes import ExitCode
from loopdetect.cli.lazy import LazyGroup
from loopdetect.errors import LoopdetectError

# Containers made between two looks for garbage (Python's own default is 700).
GARBAGE: Final = 20_000

COMMANDS: Final = {
    "inspect": (
        "loopdetect.cli.cmd_inspect",
        "inspect",
        "Say what a server was doing at the end of its log, and why it died.",
    ),
    "watch": (
        "loopdetect.cli.cmd_watch",
        "watch",
        "Follow logs as they grow and tell what happens as it happens.",
    ),
    "wait": (
        "loopdetect.cli.cmd_wait",
        "wait",
        "Return the moment that a server is ready or will never be, and say why.",
    ),
    "run": (
        "loopdetect.cli.cmd_run",
        "run",
        "Start a server, wait for it, and leave it running or stay with it.",
    ),
    "compare": (
        "loopdetect.cli.cmd_compare",
        "compare",
        "Say how a bad start differs from a good one: arguments, times, errors.",
    ),
    "profiles": (
        "loopdetect.cli.cmd_profiles",
        "profiles",
        "List, show and test what is known about each server.",
    ),
    "check": (
        "loopdetect.cli.cmd_check",
        "check",
        "Hold logs against what is expected of them: for pre-commit and CI.",
    ),
    "scan": (
        "loopdetect.cli.cmd_scan",
        "scan",
        "Read many logs and group them by how they failed.",
    ),
    "redact": (
        "loopdetect.cli.cmd_redact",
        "redact",
        "Write a copy of a log without secrets and names, to share it.",
    ),
    "config": (
        "loopdetect.cli.cmd_config",
        "config",
        "Show each setting, its value and where it comes from.",
    ),
    "explain": (
        "loopdetect.cli.cmd_explain",
        "explain",
        "Explain a failure reason and what to do about it.",
    ),
}

PROGRAM: Final = "loopdetect"
COMPLETION_VARIABLE: Final = "_LOOPDETECT_COMPLETE"
COMPLETION: Final = (
    "Shell completion: put the output of _LOOPDETECT_COMPLETE=bash_source loopdetect "
    "(zsh_source, fish_source) into your shell's start-up file."
)


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    epilog=COMPLETION,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", message=f"{PROGRAM} %(version)s")
@click.option(
    "--config",
    metavar="FILE",
    default=None,
    help="Read settings from FILE, not from the nearest loopdetect.toml or pyproject.toml.",
)
def cli(config: str | None) -> None:
    """Tell from its log whether an LLM inference server is loading, ready, stalled, stopped,
    crashed or crash-looping, in which phase it dies, and which line is the true cause.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    # A short life leaves little to collect; the default would look a hundred times while it starts.
    gc.set_threshold(GARBAGE)
    try:
        code = _invoke(sys.argv[1:] if argv is None else list(argv))
        if argv is None:
            # The process ends here: what it still holds need not be looked through once more.
            gc.freeze()
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_stdout()
        return ExitCode.READER_GONE
    except LoopdetectError as problem:
        complain(str(problem), problem.hint)
        return ExitCode.UNABLE
    except click.exceptions.NoArgsIsHelpError as problem:
        click.echo(problem.format_message(), err=True)
        return ExitCode.UNABLE
    except click.ClickException as problem:
        complain(problem.format_message(), _usage_hint(problem))
        return ExitCode.UNABLE
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except (KeyboardInterrupt, click.Abort):
        return ExitCode.INTERRUPTED
    except Exception as problem:
        return _unexpected(problem)
    return code


def _invoke(arguments: list[str]) -> int:
    if COMPLETION_VARIABLE in os.environ:
        cli.main(args=arguments, prog_name=PROGRAM)
    with cli.make_context(PROGRAM, list(arguments)) as context:
        context.default_map = default_map(COMMANDS, arguments, context.params["config"])
        code = cli.invoke(context)
    return code if isinstance(code, int) else ExitCode.OK


def _usage_hint(problem: click.ClickException) -> str | None:
    context = getattr(problem, "ctx", None)
    return f"see {context.command_path} --help" if context else None


def _unexpected(problem: Exception) -> int:
    if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
        _abandon_stdout()
        complain(f"cannot write: {problem.strerror}", "make room on the disk")
        return ExitCode.UNABLE
    if os.environ.get("LOOPDETECT_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    complain(
        f"a bug in loopdetect {__version__}, not in your log: {type(problem).__name__}: {problem}",
        "please report it with what LOOPDETECT_DEBUG=1 prints for the same command",
        word="internal error",
    )
    return ExitCode.BUG


def _abandon_stdout() -> None:
    """Keep the interpreter from complaining of its output once more when it exits."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
