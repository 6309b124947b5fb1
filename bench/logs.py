"""Made-up server logs of any size, the same for the same seed.

    python bench/logs.py OUT --kind KIND [--server vllm|sglang|llama-cpp] [--size 1G] [--seed 1]

normal      two lives that serve long (one is stopped, one crashes), then a crash loop of ten
quiet       the same without an access log
prompts     the same with requests logged, prompts and all; some of them quote tracebacks
bars        progress bars, a line for each state
bars-cr     progress bars, redrawn on one line
restarts    2,000 lives that die while they load
cri         normal, in a container runtime's envelope
journald    normal, as `journalctl -o short-iso` prints it
docker      normal, as docker's json-file driver keeps it
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, Final

UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
BEGIN: Final = 1_767_225_600.0
LOOP: Final = 10
LIVES: Final = 2000
WORDS: Final = (
    "please", "why", "does", "the", "loader", "say", "that", "memory", "is", "not", "enough", "when",
    "I", "start", "my", "model", "it", "failed", "with", "an", "error", "and", "shuts", "down", "again",
)  # fmt: skip
QUOTED: Final = (
    r"\nTraceback (most recent call last):\n  File \"main.py\", line 7, in <module>\n"
    r"RuntimeError: CUDA out of memory"
)
PATHS: Final = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/health",
    "/metrics",
    "/v1/models",
)


def size_of(text: str) -> int:
    """Read a size: 100M, 1G, or bytes."""
    unit = UNITS.get(text[-1:].upper())
    return int(float(text[:-1]) * unit) if unit else int(text)


class Server:
    """Writes what one server prints; `now` is its clock."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = BEGIN
        self.pid = 100

    def stamp(self, form: str) -> str:
        return time.strftime(form, time.gmtime(self.now))

    def tick(self, seconds: float) -> None:
        self.now += seconds * self.random.random()

    def begin(self) -> None:
        """A new process."""
        self.now += 20
        self.pid += self.random.randrange(1, 50)

    def bar(
        self, label: str, total: int, *, redrawn: bool = False, form: str = "tqdm"
    ) -> Iterator[str]:
        """A progress bar from nothing to its end."""
        for done in range(total + 1):
            self.now += 0.2
            spent, left = int(done * 0.2), int((total - done) * 0.2)
            share = 100 * done // total
            drawn = " Completed |" if form == "plain" else f"|{'█' * (share // 10):10}|"
            text = (
                f"{label}: {share:3d}%{drawn} {done}/{total} [{spent // 60:02d}:{spent % 60:02d}"
                f"<{left // 60:02d}:{left % 60:02d}, {4 + self.random.random():5.2f}it/s]"
            )
            yield f"\r{text}" if redrawn else f"{text}\n"
        yield "\n"

    def access(self) -> str:
        """A line of the web server's access log."""
        r = self.random.random()
        path = PATHS[0] if r < 0.8 else PATHS[int(r * 1000) % len(PATHS)]
        verb = "GET" if path in PATHS[3:] else "POST"
        code = "200 OK" if r < 0.998 else "400 Bad Request"
        number = int(r * 1e9)
        return (
            f"INFO:     10.{number % 250}.{number % 241}.{number % 239}:{32768 + number % 28000}"
            f' - "{verb} {path} HTTP/1.1" {code}\n'
        )

    def prompt(self) -> str:
        """The text of a user."""
        words = " ".join(self.random.choices(WORDS, k=60))
        return words + (QUOTED if self.random.random() < 0.5 else "")

    def start(self, *, upto: int = 9, shards: int = 60, redrawn: bool = False) -> Iterator[str]:
        """The lines from the start to readiness, or up to a step."""
        raise NotImplementedError

    def work(self, *, access: bool, prompts: bool) -> Iterator[str]:
        """Ten seconds of serving."""
        raise NotImplementedError

    def crash(self, number: int) -> Iterator[str]:
        """A death with a traceback."""
        raise NotImplementedError

    def stop(self) -> Iterator[str]:
        """A clean stop."""
        yield "INFO:     Shutting down\n"
        yield "INFO:     Waiting for application shutdown.\n"
        yield "INFO:     Application shutdown complete.\n"
        yield f"INFO:     Finished server process [{self.pid}]\n"

    def listening(self, port: int) -> Iterator[str]:
        """What uvicorn prints when it is up."""
        yield f"INFO:     Started server process [{self.pid}]\n"
        yield "INFO:     Waiting for application startup.\n"
        yield "INFO:     Application startup complete.\n"
        yield f"INFO:     Uvicorn running on http://0.0.0.0:{port} (Press CTRL+C to quit)\n"


class Vllm(Server):
    """In the manner of vLLM with four workers."""

    def say(self, where: str, text: str, level: str = "INFO") -> str:
        self.tick(0.3)
        return (
            f"(APIServer pid={self.pid}) {level} {self.stamp('%m-%d %H:%M:%S')} [{where}] {text}\n"
        )

    def core(self, where: str, text: str, level: str = "INFO") -> str:
        line = self.say(where, text, level)
        return line.replace(f"(APIServer pid={self.pid})", f"(EngineCore_DP0 pid={self.pid + 1})")

    def start(self, *, upto: int = 9, shards: int = 60, redrawn: bool = False) -> Iterator[str]:
        yield self.say("api_server.py:1839", "vLLM API server version 0.11.0")
        yield self.say(
            "utils.py:233", "non-default args: {'model': '/models/m', 'max_model_len': 32768}"
        )
        yield self.say("model.py:547", "Resolved architecture: LlamaForCausalLM")
        yield self.core(
            "core.py:77", "Initializing a V1 LLM engine (v0.11.0) with config: model='/models/m'"
        )
        yield self.core("gpu_model_runner.py:2602", "Starting to load model /models/m...")
        yield from self.bar(
            "Loading safetensors checkpoint shards", shards, redrawn=redrawn, form="plain"
        )
        if upto < 2:
            return
        yield self.core("default_loader.py:267", "Loading weights took 13.51 seconds")
        yield self.core(
            "gpu_model_runner.py:2653", "Model loading took 14.9889 GiB and 14.1 seconds"
        )
        yield self.core(
            "backends.py:548", "Using cache directory: /cache/torch_compile_cache/ab/rank_0_0"
        )
        yield self.core("monitor.py:34", "torch.compile takes 41.20 s in total")
        yield self.core("gpu_worker.py:298", "Available KV cache memory: 34.55 GiB")
        if upto < 3:
            return
        yield self.core("kv_cache_utils.py:1087", "GPU KV cache size: 452,848 tokens")
        yield from self.bar(
            "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)", 67, redrawn=redrawn
        )
        yield self.core(
            "gpu_model_runner.py:3480", "Graph capturing finished in 20 secs, took 0.92 GiB"
        )
        yield self.core(
            "core.py:210", "init engine (profile, create kv cache, warmup model) took 80.1 seconds"
        )
        yield self.say("api_server.py:1634", "Starting vLLM API server 0 on http://0.0.0.0:8000")
        for path in PATHS:
            yield self.say("launcher.py:36", f"Route: {path}, Methods: GET, HEAD")
        yield from self.listening(8000)

    def work(self, *, access: bool, prompts: bool) -> Iterator[str]:
        self.now += 10
        r = self.random.random
        yield self.say(
            "loggers.py:127",
            f"Engine 000: Avg prompt throughput: {r() * 9000:.1f} tokens/s, Avg generation throughput: "
            f"{r() * 3000:.1f} tokens/s, Running: {int(r() * 64)} reqs, Waiting: {int(r() * 9)} reqs, "
            f"GPU KV cache usage: {r() * 100:.1f}%, Prefix cache hit rate: {r() * 100:.1f}%",
        )
        for _ in range(40 if access else 0):
            if prompts and r() < 0.5:
                yield self.say(
                    "logger.py:39",
                    f"Received request chatcmpl-{int(r() * 1e12):032x}: prompt: '<|user|>{self.prompt()}', "
                    f"params: SamplingParams(n=1, temperature={r():.1f}), lora_request: None.",
                )
            yield self.access()

    def crash(self, number: int) -> Iterator[str]:
        words = (
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"
            " when initializing the engine.",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity"
            " of 79.10 GiB of which 1.02 GiB is free.",
        )[number % 2]
        yield self.core("core.py:708", "EngineCore failed to start.", "ERROR")
        yield self.core("core.py:708", "Traceback (most recent call last):", "ERROR")
        for step in range(12):
            yield self.core(
                "core.py:708",
                f'  File "/opt/app/core.py", line {90 + step}, in step_{step}',
                "ERROR",
            )
            yield self.core("core.py:708", f"    return self.step_{step + 1}()", "ERROR")
        yield self.core("core.py:708", words, "ERROR")
        yield f"(APIServer pid={self.pid}) Traceback (most recent call last):\n"
        yield f'(APIServer pid={self.pid})   File "/opt/app/bin/vllm", line 8, in <module>\n'
        yield f"(APIServer pid={self.pid})     sys.exit(main())\n"
        yield (
            f"(APIServer pid={self.pid}) RuntimeError: Engine core initialization failed. See root cause"
            " above. Failed core proc(s): {'EngineCore_DP0': 1}\n"
        )


class Sglang(Server):
    """In the manner of SGLang with four ranks."""

    def say(self, text: str, rank: str = "") -> str:
        self.tick(0.3)
        return f"[{self.stamp('%Y-%m-%d %H:%M:%S')}{rank}] {text}\n"

    def start(self, *, upto: int = 9, shards: int = 60, redrawn: bool = False) -> Iterator[str]:
        ranks = [f" TP{rank}" for rank in range(4)]
        yield self.say("server_args=ServerArgs(model_path='/models/m', tp_size=4, port=30000)")
        for rank in ranks:
            yield self.say("Init torch distributed begin.", rank)
            yield self.say("Load weight begin. avail mem=78.81 GB", rank)
        yield from self.bar(
            "Loading safetensors checkpoint shards", shards, redrawn=redrawn, form="plain"
        )
        if upto < 2:
            return
        for rank in ranks:
            yield self.say(
                "Load weight end. type=LlamaForCausalLM, avail mem=45.00 GB, mem usage=33.70 GB.",
                rank,
            )
            yield self.say(
                "KV Cache is allocated. #tokens: 461234, K size: 17.60 GB, V size: 17.60 GB", rank
            )
        if upto < 3:
            return
        for rank in ranks:
            yield self.say(
                "Capture cuda graph begin. This can take up to several minutes. avail mem=9.31 GB",
                rank,
            )
        yield from self.bar("Capturing batches (bs=160 avail_mem=9.02 GB)", 23, redrawn=redrawn)
        for rank in ranks:
            yield self.say(
                "Capture cuda graph end. Time elapsed: 12.40 s. mem usage=0.73 GB. avail mem=8.58 GB.",
                rank,
            )
            yield self.say(
                "max_total_num_tokens=461234, chunked_prefill_size=8192, context_len=131072", rank
            )
        yield from self.listening(30000)
        yield self.say("The server is fired up and ready to roll!")

    def work(self, *, access: bool, prompts: bool) -> Iterator[str]:
        self.now += 10
        r = self.random.random
        for _ in range(8):
            yield self.say(
                f"Decode batch. #running-req: {int(r() * 64)}, #token: {int(r() * 460000)}, token usage: {r():.2f}, "
                f"cuda graph: True, gen throughput (token/s): {r() * 3000:.2f}, #queue-req: {int(r() * 9)}, ",
                " TP0",
            )
        for _ in range(20 if access else 0):
            yield self.say(
                f"Prefill batch. #new-seq: {int(r() * 4)}, #new-token: {int(r() * 8192)}, #cached-token: "
                f"{int(r() * 511)}, token usage: {r():.2f}, #running-req: {int(r() * 63)}, #queue-req: 0, ",
                " TP0",
            )
            if prompts:
                yield self.say(
                    f"Receive: obj=GenerateReqInput(rid='{int(r() * 1e12):x}', text='{self.prompt()}')"
                )
            yield self.access()

    def crash(self, number: int) -> Iterator[str]:
        yield self.say("Scheduler hit an exception: Traceback (most recent call last):", " TP0")
        for step in range(12):
            yield f'  File "/opt/app/scheduler.py", line {90 + step}, in step_{step}\n    self.step_{step + 1}()\n'
        yield (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.\n\n"
            if number % 2
            else "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n\n"
        )
        yield self.say("Received sigquit from a child process. It usually means the child failed.")
        yield "Killed\n"


class LlamaCpp(Server):
    """In the manner of llama.cpp's server."""

    def begin(self) -> None:
        super().begin()
        self.born = self.now

    def say(self, text: str, level: str = "I") -> str:
        self.tick(0.05)
        spent = self.now - self.born
        minutes, rest = divmod(spent, 60)
        clock = f"{int(minutes)}.{int(rest):02d}.{int(rest * 1000) % 1000:03d}.{int(rest * 1e6) % 1000:03d}"
        return f"{clock} {level} {text}\n"

    def start(self, *, upto: int = 9, shards: int = 60, redrawn: bool = False) -> Iterator[str]:
        yield self.say("srv    load_model: loading model '/models/m.gguf'")
        yield self.say("cmn          init: llama threadpool init, n_threads = 16")
        if shards > 100:
            yield from self.bar("Downloading m.gguf", shards, redrawn=redrawn)
        if upto < 2:
            return
        yield self.say(
            "srv    load_model: initializing, n_slots = 4, n_ctx_slot = 2048, kv_unified = 'true'"
        )
        if upto < 3:
            return
        yield self.say("srv  llama_server: model loaded")
        yield self.say("srv  llama_server: listening on http://127.0.0.1:8080")

    def work(self, *, access: bool, prompts: bool) -> Iterator[str]:
        self.now += 10
        r = self.random.random
        for slot in range(8):
            task = int(r() * 1e6)
            yield self.say(
                f"slot launch_slot_: id  {slot % 4} | task {task} | processing task, is_child = 0"
            )
            yield self.say(
                f"slot print_timing: id  {slot % 4} | task {task} | prompt eval time = {r() * 90:10.2f} ms / "
                f"{int(r() * 900):5d} tokens ({r():8.2f} ms per token, {r() * 5000:8.2f} tokens per second)"
            )
            yield self.say(
                f"slot      release: id  {slot % 4} | task {task} | stop processing: n_tokens = 31, truncated = 0"
            )
            if access:
                yield self.say(
                    "srv  log_server_r: done request: POST /v1/chat/completions 127.0.0.1 200"
                )

    def crash(self, number: int) -> Iterator[str]:
        yield self.say("srv    load_model: failed to load model, '/models/m.gguf'", "E")
        yield self.say("srv  llama_server: exiting due to model loading error", "E")

    def stop(self) -> Iterator[str]:
        yield self.say("srv    operator(): operator(): cleaning up before exit...")


SERVERS: Final[dict[str, type[Server]]] = {"vllm": Vllm, "sglang": Sglang, "llama-cpp": LlamaCpp}


def normal(
    server: Server, size: int, *, access: bool = True, prompts: bool = False
) -> Iterator[str]:
    """Two long lives, then a crash loop."""
    each = max(0, (size - LOOP * 9000) // 2 - 30_000)
    for number in range(2):
        server.begin()
        yield from server.start(redrawn=number == 0)
        written = 0
        while written < each:
            text = "".join(server.work(access=access, prompts=prompts))
            written += len(text)
            yield text
        yield from server.crash(1) if number else server.stop()
    for number in range(LOOP):
        server.begin()
        yield from server.start(upto=2 + number % 2, redrawn=number % 2 == 0)
        yield from server.crash(number)


def bars(server: Server, size: int, *, redrawn: bool) -> Iterator[str]:
    """Bars of thousands of steps until the size is reached."""
    written = 0
    while written < size:
        server.begin()
        for text in server.start(upto=1, shards=3000, redrawn=redrawn):
            written += len(text)
            yield text


def restarts(server: Server, size: int) -> Iterator[str]:
    """Lives that die while they load; their number is fixed, the size is not looked at."""
    for _ in range(LIVES):
        server.begin()
        yield from server.start(upto=2, shards=8)
        yield from server.crash(0)


def lines(parts: Iterator[str]) -> Iterator[str]:
    """Yield whole physical lines."""
    rest = ""
    for part in parts:
        *whole, rest = (rest + part).split("\n")
        yield from whole
    if rest:
        yield rest


def cri(server: Server, parts: Iterator[str]) -> Iterator[str]:
    """The container runtime's envelope round each line."""
    for line in lines(parts):
        yield f"{server.stamp('%Y-%m-%dT%H:%M:%S')}.{int(server.now % 1 * 1e9):09d}Z stderr F {line}\n"


def journald(server: Server, parts: Iterator[str]) -> Iterator[str]:
    """What `journalctl -o short-iso` puts before each line."""
    for line in lines(parts):
        yield f"{server.stamp('%Y-%m-%dT%H:%M:%S')}+00:00 node serve[{server.pid}]: {line}\n"


def docker(server: Server, parts: Iterator[str]) -> Iterator[str]:
    """The records of docker's json-file driver."""
    for line in lines(parts):
        stamp = f"{server.stamp('%Y-%m-%dT%H:%M:%S')}.{int(server.now % 1 * 1e9):09d}Z"
        yield f'{{"log":{json.dumps(line + chr(10))},"stream":"stderr","time":"{stamp}"}}\n'


KINDS: Final[dict[str, Callable[[Server, int], Iterator[str]]]] = {
    "normal": normal,
    "quiet": lambda server, size: normal(server, size, access=False),
    "prompts": lambda server, size: normal(server, size, prompts=True),
    "bars": lambda server, size: bars(server, size, redrawn=False),
    "bars-cr": lambda server, size: bars(server, size, redrawn=True),
    "restarts": restarts,
    "cri": lambda server, size: cri(server, normal(server, size)),
    "journald": lambda server, size: journald(server, normal(server, size)),
    "docker": lambda server, size: docker(server, normal(server, size)),
}


def write(out: IO[bytes], kind: str, server: str, size: int, seed: int = 1) -> int:
    """Write a log; return its size in bytes."""
    written, held, waiting = 0, 0, []
    for part in KINDS[kind](SERVERS[server](seed), size):
        waiting.append(part)
        held += len(part)
        if held > 1 << 20:
            written += out.write("".join(waiting).encode())
            waiting, held = [], 0
    return written + out.write("".join(waiting).encode())


def main() -> int:
    """Make one log."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("out")
    parser.add_argument("--kind", choices=KINDS, default="normal")
    parser.add_argument("--server", choices=SERVERS, default="vllm")
    parser.add_argument("--size", type=size_of, default=size_of("1G"))
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with open(chosen.out, "wb") as out:
        write(out, chosen.kind, chosen.server, chosen.size, chosen.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
