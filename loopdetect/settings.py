"""Settings: what holds when an option is not given, and where each value comes from.

A value is taken from the first place that has it: the option, the environment
(`LOOPDETECT_STALL_AFTER`, `LOOPDETECT_CHECK_EXPECT`), the nearest `loopdetect.toml` or
`[tool.loopdetect]` of a `pyproject.toml` in this folder or above it within the same repository,
the default. Nothing here can run a command: whoever enters a foreign folder is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loopdetect import written
from loopdetect.errors import LoopdetectError

FILE: Final = "loopdetect.toml"
PYPROJECT: Final = "pyproject.toml"
PREFIX: Final = "LOOPDETECT_"
FILE_VARIABLE: Final = "LOOPDETECT_CONFIG"
# Variables of this prefix that are no settings.
RESERVED: Final = frozenset({FILE_VARIABLE, "LOOPDETECT_PROFILES", "LOOPDETECT_DEBUG"})


class SettingsError(LoopdetectError):
    """A setting is wrong; the message names the place and the key."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One key: which commands it is for (all without any), which parameter it sets, how it is read.

    `read` raises ValueError with what the value must be. `paths` are relative to the file.
    """

    name: str
    default: object
    help: str
    read: Callable[[object], object]
    command: str | None = None
    parameter: str = ""
    paths: bool = False

    @property
    def key(self) -> str:
        """The key in a file, with its table."""
        return f"{self.command}.{self.name}" if self.command else self.name

    @property
    def variable(self) -> str:
        """The environment variable."""
        return PREFIX + self.key.replace(".", "_").upper()


@dataclass(frozen=True, slots=True)
class Value:
    """The value in force of one setting, and its origin in words."""

    setting: Setting
    value: object
    origin: str

    @property
    def is_default(self) -> bool:
        """True if nobody has set it."""
        return self.origin == "default"


def _choice(*words: str) -> Callable[[object], object]:
    def read(value: object) -> object:
        if value in words:
            return value
        raise ValueError(f"{value!r} is not one of {', '.join(words)}")

    return read


def _converted(check: Callable[[object], object]) -> Callable[[object], object]:
    def read(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, str | int | float | list):
            raise ValueError("must be a text")
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        check(text)
        return text

    return read


def _count(least: int) -> Callable[[object], object]:
    def read(value: object) -> object:
        text = str(value)
        if isinstance(value, bool) or not text.isdecimal() or int(text) < least:
            raise ValueError(f"must be a whole number, {least} or more")
        return int(text)

    return read


def _flag(value: object) -> object:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    said = words.get(str(value).lower())
    if said is None:
        raise ValueError("must be true or false")
    return said


def _text(value: object) -> object:
    if not isinstance(value, str) or not value:
        raise ValueError("must be a text that is not empty")
    return value


def _texts(value: object) -> object:
    if isinstance(value, str):
        return [part for part in value.split(",") if part]
    if not isinstance(value, list) or not all(isinstance(part, str) and part for part in value):
        raise ValueError("must be a text or a list of texts")
    return value


SETTINGS: Final = (
    Setting("color", "auto", "colours", _choice("auto", "always", "never"), parameter="color"),
    Setting(
        "profile", [], "servers' profiles: a name or TOML files", _texts, parameter="profiles",
        paths=True,
    ),
    Setting("loop_after", 2, "bad runs in a row that make a crash loop", _count(2)),
    Setting("stable_after", None, "how long a run serves to end a loop", _converted(written.duration)),
    Setting("stall_after", "5m", "how long nothing may advance", _converted(written.duration)),
    Setting("keep", [], "globs of texts that are no secret", _texts, parameter="keep"),
    Setting(
        "format", "text", "how inspect writes its report",
        _choice("text", "json", "jsonl", "markdown", "html"), "inspect", "form",
    ),
    Setting("fail_on", None, "states that make inspect exit 1", _converted(written.states), "inspect"),
    Setting("expect", None, "states that check lets through", _converted(written.states), "check"),
    Setting("baseline", None, "file of known failures", _text, "check", paths=True),
    Setting("secrets", False, "whether check looks for secrets", _flag, "check"),
    Setting("jobs", 0, "processes of check, 0 for as many as pay off", _count(0), "check"),
    Setting(
        "format", "text", "how check writes its findings",
        _choice("text", "json", "markdown", "github", "sarif", "junit"), "check", "form",
    ),
)  # fmt: skip

_BY_KEY: Final = {setting.key: setting for setting in SETTINGS}
_TABLES: Final = frozenset(setting.command for setting in SETTINGS if setting.command)


def find_file(folder: Path) -> Path | None:
    """Return the nearest file with settings, from `folder` up to its repository's top."""
    for place in (folder, *folder.parents):
        if (place / FILE).is_file():
            return place / FILE
        if (place / PYPROJECT).is_file() and _has_section(place / PYPROJECT):
            return place / PYPROJECT
        if (place / ".git").exists():
            return None
    return None


def effective(environ: Mapping[str, str], folder: Path, file: str | None = None) -> list[Value]:
    """Return every setting with its value; `folder` is the current one.

    `file` or LOOPDETECT_CONFIG is read instead of a search. Raises SettingsError with place, key
    and a suggestion.
    """
    named = file or environ.get(FILE_VARIABLE)
    path = Path(named) if named else find_file(folder)
    if path and path.is_relative_to(folder):
        path = path.relative_to(folder)
    if named and not Path(named).is_file():
        raise SettingsError(f"{named}: no such settings file", "check the path")
    in_file = dict(_from_file(path)) if path else {}
    in_environment = dict(_from_environment(environ))
    values: list[Value] = []
    for setting in SETTINGS:
        value = in_environment.get(setting.key) or in_file.get(setting.key)
        values.append(value or Value(setting, setting.default, "default"))
    return values


def defaults(values: list[Value], commands: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was set, by command and parameter; commands map to their own commands, if any."""
    return {name: _of_command(values, name, inner) for name, inner in commands.items()}


def _of_command(values: list[Value], command: str, inner: object) -> dict[str, Any]:
    if isinstance(inner, Mapping):
        return {name: _of_command(values, command, None) for name in inner}
    return {
        item.setting.parameter or item.setting.name: item.value
        for item in values
        if not item.is_default and item.setting.command in (None, command)
    }


def _has_section(path: Path) -> bool:
    try:
        return b"tool.loopdetect" in path.read_bytes()
    except OSError:
        return False


def _from_file(path: Path) -> Iterator[tuple[str, Value]]:
    import tomllib

    try:
        table: Any = tomllib.loads(path.read_text("utf-8"))
    except OSError as problem:
        raise SettingsError(
            f"{path}: cannot be read: {problem.strerror}", "check its permissions"
        ) from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise SettingsError(f"{path}: not valid TOML: {problem}", "see docs/ci.md") from problem
    prefix = ""
    if path.name == PYPROJECT:
        table, prefix = table.get("tool", {}).get("loopdetect", {}), "tool.loopdetect."
    origin = f"{path}" if not prefix else f"{path} [tool.loopdetect]"
    for key, raw in _flattened(table, f"{path}: {prefix}"):
        setting = _known(key, _BY_KEY, f"{path}: {prefix}{key}")
        value = _read(setting, raw, f"{path}: {prefix}{key}")
        yield key, Value(setting, _under(path.parent, setting, value), origin)


def _flattened(table: object, where: str) -> Iterator[tuple[str, object]]:
    if not isinstance(table, dict):
        raise SettingsError(f"{where.rstrip('.')}: must be a table")
    for key, value in table.items():
        if key in _TABLES:
            if not isinstance(value, dict):
                raise SettingsError(f"{where}{key}: must be a table", f"write [{key}]")
            yield from ((f"{key}.{inner}", item) for inner, item in value.items())
        else:
            yield key, value


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, Value]]:
    variables = {setting.variable: setting for setting in SETTINGS}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in RESERVED and environ[name]:
            setting = _known(name, variables, f"environment: {name}")
            value = _read(setting, environ[name], f"environment: {name}")
            yield setting.key, Value(setting, value, f"environment {name}")


def _known(key: str, settings: Mapping[str, Setting], where: str) -> Setting:
    if key in settings:
        return settings[key]
    from loopdetect.errors import suggestion

    raise SettingsError(f"{where}: unknown setting", suggestion(key, settings))


def _read(setting: Setting, raw: object, where: str) -> object:
    try:
        return setting.read(raw)
    except ValueError as problem:
        raise SettingsError(f"{where}: {problem}") from problem


def _under(folder: Path, setting: Setting, value: object) -> object:
    """Return paths of a file's setting as they are seen from here."""
    if not setting.paths:
        return value
    if isinstance(value, list):
        return [_path(folder, word) for word in value]
    return str(folder / str(value))


def _path(folder: Path, word: str) -> str:
    return str(folder / word) if word.endswith(".toml") or "/" in word else word
