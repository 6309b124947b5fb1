from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopdetect.arguments import HIDDEN, OPENERS, Dump, changes, listed, read, starts
from loopdetect.notable import Notable

VLLM = "(APIServer pid=7) INFO 03-01 10:00:00 [utils.py:253] non-default args: {'model': '/m/a', 'port': 8000, 'max_model_len': 8192}"
NAMESPACE = "INFO 03-01 10:00:00 api_server.py:712] args: Namespace(host=None, port=8000, lora_modules=None, allowed_origins=['*'], kv=(1, 2))"
SGLANG = "[2026-03-01 10:00:00] server_args=ServerArgs(model_path='/m/a', mem_fraction_static=0.88, random_seed=12, tp_size=2)"
SGLANG_DICT = "[2026-03-01 10:00:00] server_args={'model_path': '/m/a', 'cuda_graph': {'bs': [1, 2], 'on': True}}"
ENGINE = "INFO [core.py:116] Initializing a V1 LLM engine (v0.26.0) with config: model='/m/a', speculative_config=SpecConfig(method='draft', n=3), dtype=torch.bfloat16, seed=0"
TEI = '2026-03-01T10:00:00Z  INFO text_embeddings_router: router/src/main.rs:216: Args { model_id: "org/emb", revision: None, dtype: Some(Float16), port: 80 }'
LMDEPLOY = "2026-03-01 10:00:00 - lmdeploy - INFO - input backend=turbomind, backend_config=TurbomindEngineConfig(dtype='auto', tp=2)"
LLAMA = "llama_context: n_ctx         = 4096"
OLLAMA = 'time=2026-03-01T10:00:00Z level=INFO source=routes.go:1 msg="server config" env="map[CUDA_VISIBLE_DEVICES: OLLAMA_NUM_PARALLEL:4 OLLAMA_ORIGINS:[http://a https://a] OLLAMA_DEBUG:INFO]"'
TGI = """2026-03-01T10:00:00.1Z  INFO text_generation_launcher: Args {
    model_id: "org/model",
    quantize: Some(
        Bitsandbytes,
    ),
    num_shard: None,
}"""


def values(*lines: str) -> dict[str, str]:
    notable = Notable()
    notable.feed("\n".join(lines).encode() + b"\n")
    notable.finish()
    found = read(notable.dumps(1, 10_000, None))
    return {name: value for of in found.values() for name, value in of.items()}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (VLLM, {"model": "/m/a", "port": "8000", "max_model_len": "8192"}),
        (NAMESPACE, {"host": "None", "port": "8000", "lora_modules": "None",
                     "allowed_origins": "['*']", "kv": "(1, 2)"}),
        (SGLANG, {"model_path": "/m/a", "mem_fraction_static": "0.88", "random_seed": "12",
                  "tp_size": "2"}),
        (SGLANG_DICT, {"model_path": "/m/a", "cuda_graph.bs": "[1, 2]", "cuda_graph.on": "True"}),
        (ENGINE, {"model": "/m/a", "speculative_config.method": "draft",
                  "speculative_config.n": "3", "dtype": "torch.bfloat16", "seed": "0"}),
        (TEI, {"model_id": "org/emb", "revision": "None", "dtype": "Some(Float16)", "port": "80"}),
        (LMDEPLOY, {"dtype": "auto", "tp": "2"}),
        (LLAMA, {"n_ctx": "4096"}),
        (OLLAMA, {"CUDA_VISIBLE_DEVICES": "", "OLLAMA_NUM_PARALLEL": "4",
                  "OLLAMA_ORIGINS": "[http://a https://a]", "OLLAMA_DEBUG": "INFO"}),
        (TGI, {"model_id": "org/model", "quantize": "Some( Bitsandbytes, )", "num_shard": "None"}),
    ],
    ids=["vllm", "namespace", "sglang", "sglang-dict", "engine", "tei", "lmdeploy", "llama",
         "ollama", "tgi"],
)  # fmt: skip
def test_each_dump_is_read(line: str, expected: dict[str, str]) -> None:
    assert values("before", *line.split("\n"), "after: {'port': 1}") == expected


@pytest.mark.parametrize(
    "line",
    ["Arguments were fine", "args: 3", "server_args=", "the Args of it", "with config: none given",
     "llama_context: constructing llama_context", "non-default args: None"],
)  # fmt: skip
def test_what_is_no_dump(line: str) -> None:
    assert values(line) == {}


def test_brackets_in_strings_and_apostrophes_in_words_mislead_nobody() -> None:
    line = """non-default args: {'template': "{% if a %}}} it's (", 'x': 'don\\'t, }', 'y': 2}"""
    assert values(line) == {
        "template": "{% if a %}}} it's (",
        "x": "don\\'t, }",
        "y": "2",
    }


def test_the_first_dump_of_an_origin_stands() -> None:
    assert values(VLLM, VLLM.replace("8000", "9000"))["port"] == "8000"


def test_an_address_in_memory_is_no_difference() -> None:
    one, two = (
        "server_args={'f': <function f at 0x7f01ab>}",
        "server_args={'f': <function f at 0x7fffff>}",
    )
    assert values(one) == values(two) == {"f": "<function f at 0x…>"}


def difference(a: str, b: str) -> list[tuple[str, str | None, str | None, bool]]:
    sides = [read([Dump(1, None, *starts(line))]) for line in (a, b)]  # type: ignore[misc]
    return [(c.name, c.a, c.b, c.chance) for c in changes(*sides)]


def test_what_differs_is_told_once_by_name() -> None:
    assert difference(VLLM, VLLM.replace("8192", "4096").replace(", 'port': 8000", "")) == [
        ("port", "8000", None, False),
        ("max_model_len", "8192", "4096", False),
    ]


def test_what_differs_by_chance_is_marked() -> None:
    assert difference(SGLANG, SGLANG.replace("seed=12", "seed=99")) == [
        ("random_seed", "12", "99", True)
    ]


@pytest.mark.parametrize(
    ("name", "hidden"),
    [("api_key", True), ("hf_token", True), ("ssl.password", True), ("admin_api_key", True),
     ("max_total_tokens", False), ("tokenizer", False), ("token_bucket", False), ("ssl_keyfile", False)],
)  # fmt: skip
def test_secrets_differ_but_are_not_shown(name: str, hidden: bool) -> None:
    a, b = (f"non-default args: {{'{name}': '{value}'}}" for value in ("one", "two"))
    sides = [read([Dump(1, None, *starts(line))]) for line in (a, b)]  # type: ignore[misc]
    (change,) = changes(*sides)
    assert ((change.a, change.b) == (HIDDEN, HIDDEN)) is hidden


def test_what_is_listed_hides_secrets_and_says_a_name_once() -> None:
    lines = ("non-default args: {'port': 1, 'api_key': 'sk-x', 'hf_token': None}", LMDEPLOY, VLLM)
    dumps = [Dump(n, None, *starts(line)) for n, line in enumerate(lines)]  # type: ignore[misc]
    assert listed(dumps) == (
        ("port", "1"),
        ("api_key", HIDDEN),
        ("hf_token", "None"),
        ("model", "/m/a"),
        ("max_model_len", "8192"),
        ("dtype", "auto"),
        ("tp", "2"),
    )


def test_each_opener_is_what_some_dump_begins_with() -> None:
    dumps = (VLLM, NAMESPACE, SGLANG, SGLANG_DICT, ENGINE, TEI, LMDEPLOY, LLAMA, OLLAMA, TGI)
    older = ("llama_new_context_with_model: n_ctx = 1",)
    for opener in OPENERS:
        assert any(opener.decode() in dump and starts(dump) for dump in (*dumps, *older))


@given(st.text(max_size=300))
def test_any_text_behind_an_opener_is_read_without_a_word(text: str) -> None:
    for opener in OPENERS:
        values(opener.decode() + text)
