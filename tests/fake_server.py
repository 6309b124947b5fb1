"""A small real server that logs like vLLM: run by the tests of `wait` as a process of its own.

Usage: fake_server.py PLOT [PORT]. It prints its start-up lines a few milliseconds apart, answers
HTTP on PORT, and then does what the plot says.
"""

from __future__ import annotations

import http.server
import os
import signal
import sys
import threading
import time

PACE_S = 0.004
SHARDS = 12
DEATH = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
ENGINE_DEATH = "RuntimeError: CUDA error: an illegal memory access was encountered"


def say(text: str) -> None:
    print(text, flush=True)
    time.sleep(PACE_S)


def log(process: str, place: str, text: str, level: str = "INFO") -> None:
    stamp = time.strftime("%m-%d %H:%M:%S")
    say(f"({process} pid={os.getpid()}) {level} {stamp} [{place}] {text}")


def traceback(process: str, place: str, text: str) -> None:
    log(process, place, "Traceback (most recent call last):", "ERROR")
    log(process, place, '  File "/opt/vllm/v1/worker/gpu_worker.py", line 7, in run', "ERROR")
    log(process, place, "    self.model_runner.run()", "ERROR")
    log(process, place, text, "ERROR")


class Answer(http.server.BaseHTTPRequestHandler):
    status = 503

    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(307)
            self.send_header("Location", "/health")
        elif self.path == "/secret" and self.headers.get("Authorization") != "Bearer sesame":
            self.send_response(401)
        else:
            self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        return


def listen(port: int) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Answer)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()


def start(shards: int = SHARDS) -> None:
    log("APIServer", "api_server.py:673", "vLLM API server version 0.12.0")
    log("APIServer", "api_server.py:673", "non-default args: {'model': '/models/m'}")
    log("EngineCore", "core.py:58", "Initializing a V1 LLM engine (v0.12.0) with config: model='m'")
    log("Worker", "gpu_model_runner.py:68", "Starting to load model /models/m...")
    for done in range(shards + 1):
        bar = f"{100 * done // SHARDS:3d}% Completed | {done}/{SHARDS} [00:00<00:00, 20.00it/s]"
        say(f"Loading safetensors checkpoint shards: {bar}")
    if shards == SHARDS:
        log("Worker", "default_loader.py:501", "Loading weights took 0.13 seconds")
        log("EngineCore", "kv_cache_utils.py:2327", "GPU KV cache size: 262,144 tokens")


def ready() -> None:
    log(
        "EngineCore", "core.py:402", "init engine (profile, create kv cache, warmup model) took 1 s"
    )
    say(f"(APIServer pid={os.getpid()}) INFO:     Started server process [{os.getpid()}]")
    say(f"(APIServer pid={os.getpid()}) INFO:     Waiting for application startup.")
    say(f"(APIServer pid={os.getpid()}) INFO:     Application startup complete.")
    Answer.status = 200


def die() -> None:
    traceback("EngineCore", "core.py:842", DEATH)
    log("APIServer", "api_server.py:1", "RuntimeError: Engine core initialization failed.", "ERROR")
    sys.exit(1)


def stop(number: int, frame: object) -> None:
    say(f"(APIServer pid={os.getpid()}) INFO:     Shutting down")
    say(f"(APIServer pid={os.getpid()}) INFO:     Waiting for application shutdown.")
    say(f"(APIServer pid={os.getpid()}) INFO:     Application shutdown complete.")
    say(f"(APIServer pid={os.getpid()}) INFO:     Finished server process [{os.getpid()}]")
    os._exit(0)


def main(plot: str, port: int | None) -> None:
    signal.signal(signal.SIGTERM, stop)
    if port is not None and plot not in ("late", "deaf"):
        listen(port)
    if plot == "crash":
        start(5)
        die()
    if plot == "hang":
        start(3)
        signal.pause()
    if plot == "quiet-death":
        start(3)
        os._exit(1)
    if plot == "unknown":
        say("warming the flux capacitor")
        say("capacitor is warm")
        signal.pause()
    if plot == "stop":
        start(5)
        stop(0, None)
    start()
    if port is not None and plot == "late":
        listen(port)
    ready()
    if plot == "crash-after-ready":
        time.sleep(0.09)
        traceback("EngineCore", "core.py:842", ENGINE_DEATH)
        log("EngineCore", "core.py:842", "EngineCore encountered a fatal error.", "ERROR")
        sys.exit(1)
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
