"""The environment of a service that this program starts: an allow list, and our own values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# What a process needs to find its files and speak the user's language.
_GENERAL: Final = frozenset(
    (
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TMPDIR",
        "TZ",
        "USER",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
    )
)
# Graphics cards and the libraries that drive them.
_DEVICES: Final = frozenset(
    (
        "CUDA_VISIBLE_DEVICES",
        "DYLD_LIBRARY_PATH",
        "GGML_VK_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
        "HIP_VISIBLE_DEVICES",
        "HSA_OVERRIDE_GFX_VERSION",
        "LD_LIBRARY_PATH",
        "ROCR_VISIBLE_DEVICES",
    )
)
# The server's own knobs. Not among them: its host and origins (they could expose it), its key.
_SERVER: Final = frozenset(
    (
        "OLLAMA_CONTEXT_LENGTH",
        "OLLAMA_DEBUG",
        "OLLAMA_FLASH_ATTENTION",
        "OLLAMA_GPU_OVERHEAD",
        "OLLAMA_KEEP_ALIVE",
        "OLLAMA_KV_CACHE_TYPE",
        "OLLAMA_LLM_LIBRARY",
        "OLLAMA_LOAD_TIMEOUT",
        "OLLAMA_MAX_LOADED_MODELS",
        "OLLAMA_MAX_QUEUE",
        "OLLAMA_MODELS",
        "OLLAMA_NUM_PARALLEL",
        "OLLAMA_SCHED_SPREAD",
        "OLLAMA_VULKAN",
    )
)
# Only a pull leaves the machine, over HTTPS; behind a company's proxy it cannot do without these.
_DOWNLOAD: Final = frozenset(
    (
        "HTTPS_PROXY",
        "NO_PROXY",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "https_proxy",
        "no_proxy",
    )
)
_ALLOWED: Final = _GENERAL | _DEVICES | _SERVER | _DOWNLOAD


def service_environment(ambient: Mapping[str, str], *, address: str, port: int) -> dict[str, str]:
    """Return the variables for ``ollama serve`` on a loopback address and port.

    No secret, no setting of this program and no variable of a calling agent passes.
    """
    kept = {
        name: value for name, value in ambient.items() if name in _ALLOWED or name.startswith("LC_")
    }
    host = f"[{address}]" if ":" in address else address
    return kept | {"OLLAMA_HOST": f"{host}:{port}", "OLLAMA_NO_CLOUD": "1"}
