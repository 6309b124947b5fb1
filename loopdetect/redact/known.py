"""Words that give nobody away: public domains, usual accounts, addresses of no machine."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

PLACEHOLDER: Final = re.compile(r"(?:host|user)-\d+|redacted-[a-z]+-\d+")
NO_SECRET: Final = re.compile(
    r"(?i)none|null|nil|true|false|empty|auto|default|dummy|unset|not[-_ ]?(?:set|needed|used)"
    r"|\*+|x{3,}|\.{3,}|redacted.*|<.*>?|\$.*|%.*|\{.*|\[.*|\d{1,5}"
    r"|required|optional|invalid|missing"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Unspecified, loopback, link-local, broadcast, netmask, and the blocks kept for documentation.
PLAIN_IPV4: Final = (
    *("0.", "127.", "169.254.", "255."),
    *("192.0.2.", "198.51.100.", "203.0.113.", "198.18.", "198.19."),
)
UNIT_ENDINGS: Final = _words(
    "device json mount path py scope service slice so socket target timer "
)
EXAMPLES: Final = _words("example.com example.net example.org ")
PUBLIC_DOMAINS: Final = EXAMPLES | _words(
    "aka.ms anaconda.org apache.org docker.com docker.io example fastapi.tiangolo.com fb.me "
    "ggml.ai ghcr.io git.io github.com github.io githubusercontent.com gnu.org google.com "
    "hf.co huggingface.co invalid kubernetes.io llama.com lmsys.org localhost meta.com "
    "modelscope.ai modelscope.cn nvcr.io nvidia.com ollama.ai ollama.com openai.com "
    "openxla.org pydantic.dev pypi.org python.org pythonhosted.org pytorch.org quay.io ray.io "
    "readthedocs.io registry.k8s.io semver.org sglang.ai sglang.io stackoverflow.com "
    "starlette.io tensorflow.org test triton-lang.org uvicorn.org vllm.ai w3.org wandb.ai "
    "wikipedia.org "
)
NO_HOST: Final = _words(
    "auto critical debug default error false fatal host host.docker.internal hostname info "
    "int kernel kubernetes.default.svc kubernetes.default.svc.cluster.local localhost "
    "localhost.localdomain name node none not null port stderr stdout str systemd trace true "
    "unknown warn warning "
)
NO_USER: Final = _words(
    "admin app appuser azureuser build centos coder conda container daemon debian default "
    "docker ec2-user false huggingface jovyan linuxbrew model-server nobody node none nonroot "
    "null ollama public ray root runner service sglang shared system triton-server "
    "tritonserver true ubuntu user username vllm vllm-user vscode "
)


def is_public(name: str, domains: Collection[str]) -> bool:
    """True if the host name is one of the domains or under one."""
    labels = name.split(".")
    return any(".".join(labels[place:]) in domains for place in range(len(labels)))
