"""A process that uses the managed service, for tests that end it: argv is a JSON object.

Prints ``ready`` when the endpoint is there, then waits. ``then`` says how it ends by itself:
``exit``, ``raise``, ``cancel`` or ``wait``. ``cancel_after`` cancels the start when the progress
names that stage.
"""

from __future__ import annotations

import json
import os
import signal
import sys

import anyio
import httpx
from dsh_memory.runtime.config.settings import JevSettings
from dsh_memory.runtime.endpoint import Endpoint
from dsh_memory.runtime.errors import DshMemoryError
from dsh_memory.runtime.ollama.service import ModelService


async def warm_up(endpoint: Endpoint) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=600) as client:
        await client.post(
            f"{endpoint.base_url}/v1/systemone",
            json={"model": endpoint.model, "state": "s", "questions": {"item_0": {"type": "noul"}}},
        )


class Told:
    def pull(self, status: str, completed: int | None, total: int | None) -> None:
        print("pull", completed, flush=True)

    def service(self, text: str) -> None:
        print(text, flush=True)

    def batches(self, done: int, total: int) -> None:
        pass


async def main(order: dict[str, object]) -> None:
    settings = JevSettings.model_validate(order["settings"])
    async with ModelService(settings, warm_up=warm_up, progress=Told()) as service:
        try:
            await service.endpoint()
        except DshMemoryError as error:
            print(error.code, flush=True)
            return
        print("ready", flush=True)
        if order["then"] == "raise":
            raise RuntimeError("on purpose")
        if order["then"] == "wait":
            await anyio.sleep_forever()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    try:
        anyio.run(main, json.loads(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)
