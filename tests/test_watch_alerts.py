"""Alarms on their way: a receiver on the loopback, commands that hang, what a message holds."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from report_samples import CRASH_LOOP
from watch_stage import death, start, started, wait_for

from loopdetect.alert.channel import Channel
from loopdetect.alert.command import Command
from loopdetect.alert.message import Message, facts, message, slack_text
from loopdetect.alert.webhook import SIGNATURE, Webhook, signature
from loopdetect.errors import UsageProblem
from loopdetect.follow.happened import Happened, What
from loopdetect.model import Phase, State

EVENT = Happened(
    id="abc-7", at=1772359200.0, source="logs/server.log", stream="web-1", what=What.CRASH_LOOP,
    text="vLLM was started 4 times & died <each> time", state=State.CRASH_LOOPING,
    phase=Phase.KV_CACHE, run=4, line=310, reason="kv-cache-too-small", alarm=True,
    previous=State.LOADING,
)  # fmt: skip
NOW = threading.Event


@dataclass
class Receiver:
    """What came, and what is answered: a list of codes, the last one for ever."""

    codes: list[int]
    retry_after: str = ""
    hang: bool = False
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    url: str = ""


@contextmanager
def receiving(*codes: int, **options: object) -> Iterator[Receiver]:
    receiver = Receiver(list(codes), **options)  # type: ignore[arg-type]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.append((dict(self.headers), body))
            if receiver.hang:
                receiver.released.wait(10)
                return
            code = receiver.codes.pop(0) if len(receiver.codes) > 1 else receiver.codes[0]
            self.send_response(code)
            if receiver.retry_after:
                self.send_header("Retry-After", receiver.retry_after)
            if 300 <= code < 400:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook?token=hidden"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.released.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


def webhook(receiver: Receiver, **options: object) -> Webhook:
    values: dict[str, object] = {"waits": (0.0, 0.0, 0.0), **options}
    return Webhook(receiver.url, **values)  # type: ignore[arg-type]


MESSAGE = message(EVENT, CRASH_LOOP)


def test_a_post_is_json_that_slack_understands_and_is_signed() -> None:
    with receiving(200) as receiver:
        assert webhook(receiver, secret="s3cret").send(MESSAGE, NOW()) is None
    headers, body = receiver.got[0]
    document = json.loads(body)
    assert document["text"].startswith("*crash-loop*: logs/server.log [web-1] is crash-looping")
    assert "&lt;each&gt;" in document["text"]
    assert document["report"]["verdict"]["state"] == "crash-looping"
    assert headers["Content-Type"].startswith("application/json")
    assert headers["X-Loopdetect-Delivery"] == "abc-7"
    expected = hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
    assert headers[SIGNATURE] == f"sha256={expected}" == signature("s3cret", body)


def test_without_a_secret_there_is_no_signature() -> None:
    with receiving(204) as receiver:
        assert webhook(receiver).send(MESSAGE, NOW()) is None
    assert SIGNATURE not in receiver.got[0][0]


@pytest.mark.parametrize("codes", [(500, 503, 200), (429, 200), (408, 200)], ids=str)
def test_what_may_pass_is_tried_again(codes: tuple[int, ...]) -> None:
    with receiving(*codes) as receiver:
        assert webhook(receiver).send(MESSAGE, NOW()) is None
    assert len(receiver.got) == len(codes)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 302])
def test_what_will_not_pass_is_not_tried_again(code: int) -> None:
    with receiving(code) as receiver:
        problem = webhook(receiver).send(MESSAGE, NOW())
    assert problem is not None
    assert f"answered {code}" in problem
    assert len(receiver.got) == 1


def test_it_is_given_up_after_the_last_try_and_no_secret_of_the_url_is_said() -> None:
    with receiving(500) as receiver:
        problem = webhook(receiver).send(MESSAGE, NOW())
    assert len(receiver.got) == 4
    assert problem is not None
    assert "answered 500" in problem
    assert "hidden" not in problem
    unreachable = webhook(receiver).send(MESSAGE, NOW())
    assert unreachable is not None
    assert "hidden" not in unreachable


def test_a_receiver_that_hangs_is_left_after_the_time_limit() -> None:
    with receiving(200, hang=True) as receiver:
        problem = webhook(receiver, waits=(), time_limit=0.2).send(MESSAGE, NOW())
    assert problem is not None
    assert "cannot be reached" in problem


def test_a_back_off_ends_at_once_when_the_watching_stops() -> None:
    stopping = threading.Event()
    stopping.set()
    with receiving(500) as receiver:
        began = time.monotonic()
        assert webhook(receiver, waits=(60.0,)).send(MESSAGE, stopping) is not None
    assert time.monotonic() - began < 5
    assert len(receiver.got) == 1


@pytest.mark.parametrize("url", ["", "nowhere", "ftp://x/y", "http://", "http://[x", "file:///x"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(UsageProblem):
        Webhook(url)


# -- channels


class Sender:
    name = "--test"

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.sent: list[str] = []
        self.go = threading.Event()

    def send(self, message: Message, stopping: threading.Event) -> str | None:
        while not self.go.wait(0.01):
            if stopping.is_set():
                return "stopped"
        self.sent.append(message.id)
        answer = self.answers.pop(0) if self.answers else None
        if answer == "raise":
            raise RuntimeError("odd")
        return answer


def put(channel: Channel, *ids: str) -> None:
    for each in ids:
        channel.put(Message(each, "{}"))


def test_a_channel_sends_in_order_and_says_each_problem_once() -> None:
    said: list[str] = []
    sender = Sender("bad", "bad", None, "bad", "raise")
    channel = Channel(sender, said.append)
    sender.go.set()
    put(channel, "1", "2", "3", "4", "5")
    assert channel.close(5) == 0
    assert sender.sent == ["1", "2", "3", "4", "5"] == channel.done()
    assert said == ["--test: bad", "--test: bad", "--test: RuntimeError: odd"]
    assert (channel.sent, channel.failed) == (1, 4)


def test_a_channel_that_is_stuck_holds_nobody_up_and_keeps_what_it_could_not_send() -> None:
    sender = Sender()
    channel = Channel(sender, lambda text: None)
    put(channel, "1", "2")
    assert channel.close(0.05) == 2
    assert channel.done() == []
    assert sender.sent == []


def test_a_flood_drops_the_oldest_and_says_so() -> None:
    said: list[str] = []
    sender = Sender()
    channel = Channel(sender, said.append)
    put(channel, *map(str, range(1100)))
    sender.go.set()
    assert channel.close(5) == 0
    assert sender.sent[-1] == "1099"
    assert len(sender.sent) <= 1002
    assert said == ["--test: too many alarms wait; the oldest were dropped"]


# -- commands


def test_log_text_is_data_for_a_command_and_never_a_word_of_it(tmp_path: Path) -> None:
    evil = replace(EVENT, text=f"$(touch {tmp_path}/owned); `id`\n'\"\0")
    command = Command(f'printf %s "$WATCH_SUMMARY" > {tmp_path}/said')
    assert command.send(message(evil, CRASH_LOOP), NOW()) is None
    assert not (tmp_path / "owned").exists()
    assert (tmp_path / "said").read_text().startswith("$(touch")


def test_the_children_of_a_command_that_hangs_are_ended_too(tmp_path: Path) -> None:
    command = Command(f"(sleep 600 & echo $! > {tmp_path}/pid; wait)", time_limit=0.3)
    problem = command.send(MESSAGE, NOW())
    assert problem == "took longer than 0.3 s and was ended"
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: gone(pid), "the child's end")


def gone(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    try:
        return "\nState:\tZ" in status.read_text()
    except OSError:
        return True


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("exit 3", "failed (exit 3)"),
        ("echo one; echo two >&2; exit 1", "failed (exit 1): two"),
        ("kill -9 $$", "failed (signal 9)"),
        ("no-such-command-here", "failed (exit 127)"),
        ("cat > /dev/null", None),
    ],
)
def test_how_a_command_failed_is_said(line: str, said: str | None) -> None:
    problem = Command(line).send(MESSAGE, NOW())
    assert (problem or "").startswith(said or "")
    assert (problem is None) == (said is None)


# -- messages


def test_the_facts_are_texts_that_an_environment_can_hold() -> None:
    hostile = replace(EVENT, text="a\0b\ud800\x1b[31m" + "x" * 10_000)
    values = facts(message(hostile, CRASH_LOOP).document)
    assert values["WATCH_STATE"] == "crash-looping"
    assert values["WATCH_PREVIOUS_STATE"] == "loading"
    assert values["WATCH_REASON"] == "kv-cache-too-small"
    assert values["WATCH_RESTARTS"] == "3"
    assert all("\0" not in value and "\x1b" not in value for value in values.values())
    assert max(map(len, values.values())) <= 4000


def test_a_chat_text_is_short_and_its_markup_is_ours() -> None:
    text = slack_text(replace(EVENT, text="<!channel> *bold* " + "y" * 5000), CRASH_LOOP)
    assert "<!channel>" not in text
    assert len(text) < 1500
    assert "Lower the maximum context length" in text


def test_an_alarm_without_a_report_is_whole() -> None:
    document = message(EVENT, None).document
    assert document["report"] is None
    assert facts(document)["WATCH_SERVER"] == ""


def test_an_alarm_that_could_not_be_sent_is_sent_by_the_next_watcher(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(start() + death(20) + start(60, pid=2) + death(80))
    options = ("--state-dir", tmp_path / "state", "-o", tmp_path / "out", log)
    with receiving(200, hang=True) as stuck, started("--webhook", stuck.url, *options) as process:
        wait_for(lambda: stuck.got)
        process.kill()
    with receiving(200) as receiver:
        with started("--webhook", receiver.url, *options) as process:
            wait_for(lambda: receiver.got)
            process.terminate()
            assert process.wait(10) == 143
        with started("--webhook", receiver.url, *options) as process:
            wait_for(lambda: (tmp_path / "state" / "watch.sqlite3-wal").exists())
            process.terminate()
            assert process.wait(10) == 143
    bodies = [json.loads(body) for _, body in (*stuck.got, *receiver.got)]
    assert [body["event"] for body in bodies] == ["crash-loop", "crash-loop"]
    assert bodies[0]["id"] == bodies[1]["id"]
