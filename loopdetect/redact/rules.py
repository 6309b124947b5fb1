"""What must not leave the house: one row a shape, each with the text that gates its search.

The first row that claims a stretch of text wins. No pattern can match a line end, so that lines
stay lines; the group `secret` is what is replaced.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from loopdetect.redact import known


class Sort(StrEnum):
    """The kinds of text that are replaced."""

    KEY = "private-key"
    TOKEN = "token"
    EMAIL = "email"
    IP = "ip-address"
    HOST = "host-name"
    USER = "user-name"


TITLES: Final = {
    Sort.KEY: "a private key",
    Sort.TOKEN: "a token, key or password",
    Sort.EMAIL: "an e-mail address",
    Sort.IP: "an IP address",
    Sort.HOST: "a host name",
    Sort.USER: "a user name",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One shape; one of `gates` stands in every text that holds it (compared in lower case).

    `learn` says that the name is looked for everywhere once it is known.
    """

    sort: Sort
    gates: tuple[str, ...]
    pattern: re.Pattern[str]
    wanted: Callable[[re.Match[str]], bool] = lambda found: True
    learn: bool = False


_PLACE: Final = re.compile(r"(?i)(?:host|ip|addr|address|server|bind|url|node)$")
_AFTER_A_TIME: Final = re.compile(r" [A-Z] ")


def _secret(found: re.Match[str]) -> bool:
    """A value that somebody set, not a default, a variable or a piece of source code."""
    value = found["secret"]
    if known.NO_SECRET.fullmatch(value):
        return False
    if found.groupdict().get("quote"):
        return True
    return not re.fullmatch(
        r"[A-Z_]+|[A-Za-z_][A-Za-z_.]*\(?(?<=[._(])|[A-Za-z]*[._][A-Za-z_.]*", value
    )


def _mixed(found: re.Match[str]) -> bool:
    value = found["secret"]
    return _secret(found) and bool(re.search(r"\d", value) and re.search(r"[A-Za-z]", value))


def _mail(found: re.Match[str]) -> bool:
    name, _, domain = found["secret"].lower().rpartition("@")
    if known.PLACEHOLDER.fullmatch(name):
        return False
    ending = domain.rpartition(".")[2]
    return not (ending in known.UNIT_ENDINGS or known.is_public(domain, known.EXAMPLES))


def _ipv4(found: re.Match[str]) -> bool:
    """An address, and no program's time since its start (`1.12.118.081 I`)."""
    parts = found["secret"].split(".")
    if any(int(part) > 255 or part != str(int(part)) for part in parts):
        return False
    if len(parts[2]) == len(parts[3]) == 3 and _AFTER_A_TIME.match(
        found.string, found.end("secret")
    ):
        return False
    return not found["secret"].startswith(known.PLAIN_IPV4)


def _addressed(found: re.Match[str]) -> bool:
    """An address after `=`, where a version may stand too: `host=10.1.2.3`."""
    start = found.start()
    return _ipv4(found) and bool(_PLACE.search(found.string, max(start - 16, 0), start))


def _ipv6(found: re.Match[str]) -> bool:
    try:
        address = ipaddress.IPv6Address(found["secret"])
    except ValueError:
        return False
    return not found["secret"].lower().startswith("2001:db8:") and int(address) > 1


def _host(found: re.Match[str]) -> bool:
    name = found["secret"].lower().rstrip(".")
    if name in known.NO_HOST or known.PLACEHOLDER.fullmatch(name):
        return False
    return bool(re.search(r"[a-z]", name)) and not known.is_public(name, known.PUBLIC_DOMAINS)


def _telling_host(found: re.Match[str]) -> bool:
    """A name with a dot, hyphen or digit: `http://redis` is a role, `http://gpu-7` a machine."""
    return _host(found) and bool(re.search(r"[.\d-]", found["secret"]))


def _private_host(found: re.Match[str]) -> bool:
    """A name of an inner domain; `threading.local` is Python."""
    name = found["secret"]
    return _host(found) and (not name.endswith(".local") or bool(re.search(r"[\d-]", name)))


def _user(found: re.Match[str]) -> bool:
    name = found["secret"].lower()
    return (
        name not in known.NO_USER
        and not known.PLACEHOLDER.fullmatch(name)
        and name[0] not in "<$%{"
    )


def _keyed(found: re.Match[str]) -> bool:
    """A value after the name of a secret: `api_key` is one, `eos_token` and `cache key` are not."""
    start, end = found.span("word")
    return _secret(found) and bool(_NAMED.search(found.string, max(start - 16, 0), end))


_NAME: Final = r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?"
_KEYWORD: Final = (
    r"(?:(?:api|access|secret|private|auth|admin|encryption|signing|account)[_-]?key(?:[_-]id)?"
    r"|(?:hf|hub|hugging[_-]?face|access|auth|api|bearer|refresh|github|gitlab|session|ngrok|slack"
    r"|registry|wandb|identity|security)[_-]?token|(?:password|passwd|passphrase)|client[_-]?secret)"
)
_NAMED: Final = re.compile(f"(?i){_KEYWORD}$")
_SET: Final = r"['\"]?\]?[ \t]*[:=][ \t]*\[?(?P<quote>['\"])?"
_GIVEN: Final = r"(?:=|['\"]?,?[ \t]+)(?P<quote>['\"])?"
_VALUE: Final = r"(?P<secret>(?(quote)[^'\"\r\n]{4,}|[^\s'\"`,;()\[\]{}<>&|]{6,}))"


def _rule(
    sort: Sort,
    gates: str,
    pattern: str,
    wanted: Callable[[re.Match[str]], bool] = lambda found: True,
    *,
    learn: bool = False,
) -> Rule:
    return Rule(sort, tuple(gates.lower().split()), re.compile(pattern), wanted, learn)


RULES: Final = (
    _rule(
        Sort.TOKEN,
        "hf_ sk- ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- akia asia aiza xoxb- xoxp- xoxa- "
        "xoxs- nvapi- npm_ pypi- gsk_ r8_ dapi dckr_pat_ tskey- sg. ya29.",
        r"(?<![A-Za-z0-9])(?P<secret>hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}"
        r"|github_pat_\w{20,}|glpat-[\w-]{20,}|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|xox[abps]-[\w-]{10,}"
        r"|nvapi-[\w-]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|gsk_[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{30,}"
        r"|dapi[0-9a-f]{32}|dckr_pat_[\w-]{20,}|tskey-[\w-]{16,}|SG\.[\w-]{16,}\.[\w-]{16,}|ya29\.[\w-]{20,})",
    ),
    _rule(
        Sort.TOKEN,
        "eyj",
        r"(?<![\w-])(?P<secret>eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]+)?)",
    ),
    _rule(
        Sort.TOKEN,
        "bearer basic",
        r"(?i)\b(?:bearer|authorization['\"]?[ \t]*[:=][ \t]*['\"]?basic)[ \t]+"
        r"(?P<secret>[\w.~+/-]{12,}=*)",
        _mixed,
    ),
    _rule(Sort.TOKEN, "://", r"://(?P<secret>[^\s/@'\"<>:]*:[^\s/@'\"<>]+)@", _secret),
    _rule(
        Sort.TOKEN,
        "sig= signature= credential= security-token=",
        r"(?i)[?&](?:sig|x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature"
        r"|x-goog-credential|signature)=(?P<secret>[^\s&'\"<>]{6,})",
        _secret,
    ),
    _rule(
        Sort.TOKEN,
        "key token password passwd passphrase secret",
        r"(?i)(?P<word>key(?:[_-]id)?|token|passw(?:or)?d|passphrase|secret)" + _SET + _VALUE,
        _keyed,
    ),
    _rule(Sort.TOKEN, "--", r"(?i)(?<![\w-])--[\w-]*?" + _KEYWORD + _GIVEN + _VALUE, _secret),
    _rule(
        Sort.TOKEN,
        "token secret",
        r"(?i)(?<![\w-])(?:--)?(?:token|secret)['\"]?[ \t]*[:=][ \t]*(?P<quote>['\"])?"
        r"(?P<secret>[\w.~+/-]{16,}=*)",
        _mixed,
    ),
    _rule(
        Sort.EMAIL,
        "@",
        r"(?<![\w.+-])(?P<secret>[A-Za-z0-9][\w.+-]*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,})(?![\w-])",
        _mail,
    ),
    _rule(
        Sort.IP,
        ".",
        r"(?<![\w.=+-])(?<!version )(?P<secret>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?![\w+-]|\.\w)",
        _ipv4,
    ),
    _rule(
        Sort.IP,
        "=1 =2 =3 =4 =5 =6 =7 =8 =9",
        r"(?<=[A-Za-z])=(?P<secret>\d{1,3}(?:\.\d{1,3}){3})(?![\w.+-])",
        _addressed,
    ),
    _rule(
        Sort.IP,
        ":",
        r"(?i)(?<![\w:.])(?P<secret>(?:[23][0-9a-f]{3}|f[cde][0-9a-f]{2}):(?:[0-9a-f]{0,4}:){1,6}[0-9a-f]{1,4})(?![\w:])",
        _ipv6,
    ),
    _rule(
        Sort.HOST,
        "://",
        r"(?<=[A-Za-z0-9])://(?:[^\s/@'\"]*@)?(?P<secret>" + _NAME + r")",
        _telling_host,
        learn=True,
    ),
    _rule(
        Sort.HOST,
        "internal local lan corp intra localdomain",
        r"(?<![\w.-])(?P<secret>[A-Za-z0-9][\w-]{0,62}(?:\.[\w-]{1,63}){0,8}?"
        r"\.(?:internal|corp|intra|lan|local|localdomain))(?![\w(.-])",
        _private_host,
        learn=True,
    ),
    _rule(
        Sort.HOST,
        ": ",
        r"(?m)^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
        r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d:?\d\d"
        r"|[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)? [A-Z]{2,5}|1\d{9}\.\d{6}) "
        r"(?P<secret>[A-Za-z0-9][\w.-]*) [^\s\[\]:]+(?:\[\d+\])?: ",
        _host,
        learn=True,
    ),
    _rule(
        Sort.HOST,
        " nccl ",
        r"(?<![\w.-])(?P<secret>" + _NAME + r"):\d+:\d+ \[\d+\] NCCL ",
        _host,
        learn=True,
    ),
    _rule(
        Sort.HOST,
        "socket",
        r"\bsocket [^\r\n]{0,200}?[\[(](?P<secret>[A-Za-z]" + r"[\w.-]*)(?:\]:|, ?)\d{2,5}\b",
        _host,
        learn=True,
    ),
    _rule(
        Sort.HOST,
        "host node master_addr",
        r"(?i)(?<![A-Za-z])_?(?:host_?name|node_?name|master_addr|dist[-_]init[-_]addr|head[-_]node(?:[-_]ip)?)"
        r"['\"]?[ \t]*[:=][ \t]*['\"]?(?P<secret>[A-Za-z]" + r"[\w.-]*\w)",
        _host,
        learn=True,
    ),
    _rule(
        Sort.HOST,
        "host",
        r"(?i)(?<![A-Za-z_-])(?:--)?host['\"]?(?:[ \t]*[:=][ \t]*|[ \t]+(?=[\w.-]*[.\d]))['\"]?"
        r"(?P<secret>[A-Za-z][\w.-]*\w)",
        _telling_host,
        learn=True,
    ),
    _rule(
        Sort.HOST,
        "@",
        r"(?<![\w.+-])[a-z_][a-z0-9_-]*@(?P<secret>[A-Za-z][\w-]*[\d-][\w-]*)"
        r"(?=:[~/]|[ \t][~/]|[ \t]*[\$#])",
        _host,
        learn=True,
    ),
    _rule(
        Sort.USER,
        "/home/ /users/ \\users\\",
        r"(?:/(?:home|Users)/|\\[Uu]sers\\{1,2})(?P<secret>[^\s/\\:;,'\"`<>()\[\]{}|&*?=\x00-\x1f]+)",
        _user,
        learn=True,
    ),
    _rule(
        Sort.USER,
        "user logname uid=",
        r"(?<![A-Za-z_-])(?:(?:USER|LOGNAME|USERNAME|SUDO_USER|[Uu]ser_?[Nn]ame|--user|user)=['\"]?"
        r"|uid=\d+\(|session (?:opened|closed) for user |of user )(?P<secret>[A-Za-z_][\w.-]*)",
        _user,
        learn=True,
    ),
)
