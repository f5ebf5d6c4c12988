"""Run llama.cpp's own HTTP server over one model file.

python serve.py MODEL.gguf PORT CONTEXT
"""

from __future__ import annotations

import signal
import sys

import xllamacpp


def main(model: str, port: str, context: str) -> None:
    """Serve on loopback until a signal ends the process."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = int(port)
    parameters.n_ctx = int(context)
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 2
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
