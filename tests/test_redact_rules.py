from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopdetect.redact import redaction
from loopdetect.redact.leaks import leaks
from loopdetect.redact.redaction import Redaction
from loopdetect.redact.rules import TITLES, Sort
from loopdetect.redact.search import Search

HF = "hf_" + "aB3dE5gH7j" * 3
SK = "sk-" + "proj-aB3dE5gH7jKl9mN1"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcDEF123"


def redacted(text: str, **options: object) -> str:
    data = text.encode("utf-8", "surrogateescape")
    search = Search(**options)  # type: ignore[arg-type]
    copy = b"".join(Redaction(lambda: [data], search).copy())
    return copy.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("text", "copy"),
    [
        (f"token is {HF}.", "token is redacted-token-1."),
        (f"non-default args: {{'api_key': ['{SK}']}}", "non-default args: {'api_key': ['redacted-token-1']}"),
        ("ServerArgs(api_key='s3cret', port=1)", "ServerArgs(api_key='redacted-token-1', port=1)"),
        ("--api-key abc123def --port 8000", "--api-key redacted-token-1 --port 8000"),
        ("['vllm', '--api-key', 'abc123']", "['vllm', '--api-key', 'redacted-token-1']"),
        ("export HF_TOKEN=abcdef123", "export HF_TOKEN=redacted-token-1"),
        ("MY_DB_PASSWORD: hunter2!", "MY_DB_PASSWORD: redacted-token-1"),
        ("password=letmein", "password=redacted-token-1"),
        ("AWS_SECRET_ACCESS_KEY=aB3/dE5+gH7", "AWS_SECRET_ACCESS_KEY=redacted-token-1"),
        ("key AKIAABCDEFGHIJKLMNOP", "key redacted-token-1"),
        (f"Authorization: Bearer {JWT}", "Authorization: Bearer redacted-token-1"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZDEy", "Authorization: Basic redacted-token-1"),
        ("GET /x?X-Amz-Signature=0a1b2c3d4e&y=1", "GET /x?X-Amz-Signature=redacted-token-1&y=1"),
        ("https://bob:pw12@github.com/x.git", "https://redacted-token-1@github.com/x.git"),
        ("mail to jane.doe+x@corp-mail.co.uk now", "mail to user-1@example.com now"),
        ('10.1.2.3:40312 - "GET / HTTP/1.1"', '192.0.2.1:40312 - "GET / HTTP/1.1"'),
        ("tcp://[fd00:1:2::7]:29500", "tcp://[2001:db8::1]:29500"),
        ("MASTER_ADDR=10.1.2.3", "MASTER_ADDR=192.0.2.1"),
        ("http://gpu-box-7.acme.io:8000/v1", "http://host-1:8000/v1"),
        ("Nov 30 00:10:26 gpubox vllm[12]: up", "Nov 30 00:10:26 host-1 vllm[12]: up"),
        ("2026-11-29T22:48:46+0000 vm llama[9]: x", "2026-11-29T22:48:46+0000 host-1 llama[9]: x"),
        ("dgx01:123:456 [0] NCCL INFO x", "host-1:123:456 [0] NCCL INFO x"),
        ('"hostname":"gpubox"', '"hostname":"host-1"'),
        ("ip-10-0-3-4.ec2.internal", "host-1"),
        ("alice@gpu-box:~/x$ vllm serve", "alice@host-1:~/x$ vllm serve"),
        ("/home/alice/.cache/x", "/home/user-1/.cache/x"),
        ("/mnt/home/alice: full", "/mnt/home/user-1: full"),
        (r"C:\Users\alice\x", r"C:\Users\user-1\x"),
        ("session opened for user alice", "session opened for user user-1"),
        ("USER=alice", "USER=user-1"),
        ("chown alice /home/alice", "chown user-1 /home/user-1"),
    ],
)  # fmt: skip
def test_what_gives_away_is_replaced(text: str, copy: str) -> None:
    assert redacted(text + "\n") == copy + "\n"
    assert redacted(copy + "\n") == copy + "\n"
    assert {leak.line for leak in leaks([b"\n\n", text.encode()], Search())} == {3}


@pytest.mark.parametrize(
    "text",
    [
        "vLLM API server version 0.6.6.1",
        "nvidia-cublas-cu12==12.8.4.1 v12.8.4.1",
        "1.12.118.081 I srv load: spawning",
        "0.00.009.550 W srv llama_server: no API key is set",
        "Uvicorn running on http://0.0.0.0:8000 and http://127.0.0.1:8000, http://localhost:80",
        "max_tokens=4096 eos_token='<|im_end|>' pad_token_id: 151643 token_ids=[1, 2]",
        "Processed 12345678 tokens, token usage: 0.12",
        "api_key=None, admin_api_key: null, hf_token='', password=****",
        "self.api_key = args.api_key; token=self._token; password = get_password(user)",
        "[--api-key API_KEY] [--ssl-keyfile-password SSL_KEYFILE_PASSWORD]",
        "--hf-token $HF_TOKEN --api-key ${KEY}",
        "hf_overrides={} hf_hub_download hf_transfer_enabled_for_this_run",
        "https://huggingface.co/docs https://docs.vllm.ai/x https://github.com/vllm-project/vllm",
        "http://redis:6379 http://vllm/health",
        "OSError: [Errno 8] nodename nor servname provided, or not known",
        "model@main.service: Main process exited",
        "sha256@0123456789abcdef model@main",
        "/home/ubuntu/x /root/.cache /home/ray/anaconda3",
        "2026-03-01 10:00:00 12:34:56 c10::Error std::bad_alloc fe::x",
        "2026-11-29T22:48:46+0000 ERROR engine: x",
        'INFO: user-agent "curl/8.5.0" role: user',
        "host='0.0.0.0' host: None --host 0.0.0.0",
        "threading.local _thread._local self.local",
        "masks 255.255.255.0 and doc addresses 192.0.2.9, 198.51.100.7, a@example.com",
        "-----BEGIN CERTIFICATE-----",
    ],
)
def test_what_gives_nobody_away_stays(text: str) -> None:
    assert redacted(text + "\n") == text + "\n"
    assert leaks([text.encode()], Search()) == []


def test_the_same_text_gets_the_same_placeholder_and_another_another() -> None:
    text = "10.1.1.1 10.1.1.2 10.1.1.1\n/home/alice /home/bob /home/alice\nalice, not alicea\n"
    assert redacted(text) == (
        "192.0.2.1 192.0.2.2 192.0.2.1\n/home/user-1 /home/user-2 /home/user-1\n"
        "user-1, not alicea\n"
    )


def test_a_name_is_replaced_everywhere_even_before_it_is_known() -> None:
    text = "gpu-box says hello\nNov 30 00:10:26 gpu-box vllm[12]: up\n"
    assert redacted(text) == "host-1 says hello\nNov 30 00:10:26 host-1 vllm[12]: up\n"


def test_a_name_that_means_something_in_logs_is_replaced_only_at_its_place() -> None:
    text = "Nov 30 00:10:26 engine vllm[12]: engine core failed\n"
    copy = "Nov 30 00:10:26 host-1 vllm[12]: engine core failed\n"
    assert redacted(text, words={"engine"}) == copy


def test_what_is_kept_is_kept() -> None:
    text = "10.1.1.1 10.9.1.1\n"
    assert redacted(text, keep=("10.1.*",)) == "10.1.1.1 192.0.2.1\n"


def test_a_placeholder_that_the_log_holds_is_not_given_out() -> None:
    assert redacted("192.0.2.1 10.1.1.1\n") == "192.0.2.1 192.0.2.2\n"


def test_a_private_key_is_replaced_line_by_line() -> None:
    body = "MIIEowIBAAKCAQEA0123456789abcdef"
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}1\n{body}2\n-----END RSA PRIVATE KEY-----\n"
    assert redacted(f"a\n{key}{body}3\n") == (
        "a\n-----BEGIN RSA PRIVATE KEY-----\nredacted-key-1\nredacted-key-2\n"
        f"-----END RSA PRIVATE KEY-----\n{body}3\n"
    )


def test_a_key_that_is_cut_by_a_block_is_replaced_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redaction, "BLOCK", 1)
    body = b"MIIEowIBAAKCAQEA0123456789abcdef\n"
    lines = [b"-----BEGIN PRIVATE KEY-----\n", body, body, b"-----END PRIVATE KEY-----\n", body]
    copy = b"".join(Redaction(lambda: lines, Search()).copy())
    assert copy.count(b"redacted-key-1\n") == 2
    assert copy.endswith(body)


def test_bytes_that_are_no_text_and_odd_line_ends_survive() -> None:
    text = "a\udcff\r50%\r100%\r\n10.1.1.1\r\nlast \udc80"
    assert redacted(text) == "a\udcff\r50%\r100%\r\n192.0.2.1\r\nlast \udc80"


PIECES = st.sampled_from(
    ["\n", "\r", " ", "=", ":", "'", '"', "@", "://", "/home/", "alice", "10.1.2.3", "token", "api_key",
     "password=", HF, SK, "gpu-box.acme.io", "fd00:1:2::7", "a@b.co", "NCCL", "-----BEGIN PRIVATE KEY-----",
     "Nov 30 00:10:26 ", "host", "é", "\x1b[0m", "\udcff", "0"]
)  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=6), max_size=40).map("".join))
def test_line_ends_stay_and_no_token_that_stands_alone_does(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
    copy = redacted(data)
    assert re.sub(r"[^\r\n]", "", copy) == re.sub(r"[^\r\n]", "", data)
    assert re.search(rf"(?<![A-Za-z0-9]){HF}(?![A-Za-z0-9])", copy) is None


@given(st.lists(PIECES, max_size=30).map("".join), st.integers(1, 9))
def test_any_chunking_gives_the_same_copy(text: str, size: int) -> None:
    data = text.encode("utf-8", "surrogateescape")
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    whole = b"".join(Redaction(lambda: [data], Search()).copy())
    assert b"".join(Redaction(lambda: chunks, Search()).copy()) == whole


def test_each_sort_has_a_title() -> None:
    assert set(TITLES) == set(Sort)
