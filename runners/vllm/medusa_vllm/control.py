"""The size of an elastic KV cache while the engine serves: the worker's methods for vLLM's collective_rpc, and GET /kv_cache and POST /kv_cache?bytes=N.

In: calls of the worker, which vLLM makes between two steps; requests to vLLM's API server, whose plug-in for endpoints this is if VLLM_PLUGINS names medusa.
Out: an HTTP status, and the cache's size. Fails: status 400 for an invalid size, 500 for an error of the driver.
"""

import asyncio

from . import contract, metrics

DONE, PENDING, REFUSED, FAILED = 200, 202, 400, 500
AGAIN = 0.02  # seconds until a resize that waits for requests is tried again
LARGEST = 2**63 - 1  # the largest size that a call to the engine's process can hold
ABSENT = f"resize KV cache: it has one size (start with {contract.ENV_VLLM_KV}=elastic, and see why Medusa takes no part)"


def answer(cache, step=None):
    """The status, and the cache's size or an error. step() returns whether the size is as asked."""
    if cache is None or cache.pool is None:
        return REFUSED, {"error": ABSENT}
    try:
        done = step is None or step()
    except ValueError as e:
        return REFUSED, {"error": str(e)}
    except MemoryError as e:
        return FAILED, {"error": str(e)}
    return DONE if done else PENDING, cache.described()


class Resized:
    """The worker's methods that vLLM calls. A cache that the scheduler does not know yet has no size."""

    cache = None

    def serves(self, pool):
        self.cache.pool = pool
        self.told(self.kv_cache_size())

    def kv_cache_size(self):
        return answer(self.cache)

    def resize_kv_cache(self, size):
        return self.told(answer(self.cache, lambda: self.cache.resize(size)))

    def keep_kv_cache(self):
        return self.told(answer(self.cache, lambda: self.cache.keep() or True))

    def told(self, found):
        status, size = found
        if status == DONE:
            metrics.resized(size)
        return found


class Endpoint:
    """vLLM's protocol EndpointPlugin."""

    name = "medusa"
    required_tasks = ("generate",)

    def __init__(self):
        self.engine, self.turn = None, asyncio.Lock()

    async def init_state(self, engine_client, state, args):
        self.engine = engine_client

    def attach_router(self, app):
        from fastapi import Request
        from fastapi.responses import JSONResponse

        def told(status, what):
            if status != DONE:
                what = {"error": {"message": what["error"], "type": "invalid_request_error" if status == REFUSED else "server_error", "code": status}}
            return JSONResponse(what, status)

        async def size():
            return told(*await self.ask("kv_cache_size"))

        async def resize(request: Request):
            text = request.query_params.get("bytes", "")
            return told(*await self.resize(text, request.is_disconnected))

        app.add_api_route("/kv_cache", size, methods=["GET"])
        app.add_api_route("/kv_cache", resize, methods=["POST"])

    async def ask(self, method, *args):
        (found,) = await self.engine.collective_rpc(method, args=args)
        return found

    async def resize(self, text, left):
        """Resizes run one after another. If the client leaves, the cache keeps its size."""
        if not (text.isascii() and text.isdecimal()):
            return REFUSED, {"error": f"resize KV cache: size {text!r} is no number of bytes"}
        async with self.turn:
            while True:
                status, what = await self.ask("resize_kv_cache", min(int(text), LARGEST))
                if status != PENDING:
                    return status, what
                # mutant: client that leaves before a resize ends
                if await left():
                    return await self.ask("keep_kv_cache")
                await asyncio.sleep(AGAIN)
