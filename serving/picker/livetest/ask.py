"""Asks with the openai package. In: the address, the number at a time, and lines of JSON on standard input. Out: a line for each, as answers come.

A stream that ends without a finish reason is reported as such, since the package itself ends it silently."""

import asyncio
import json
import sys

import openai


async def answer(client, q):
    arguments = dict(model=q["model"], prompt=q["prompt"], max_tokens=q["max_tokens"], extra_body={"ignore_eos": q["ignore_eos"]})
    if not q["stream"]:
        whole = await client.completions.create(**arguments)
        return whole.choices[0].text, whole.choices[0].finish_reason
    text, reason = "", None
    async for piece in await client.completions.create(stream=True, **arguments):
        for choice in piece.choices:
            text += choice.text
            reason = choice.finish_reason or reason
    return text, reason


async def ask(client, places, q):
    out = {"id": q["id"]}
    async with places:
        try:
            work = asyncio.create_task(answer(client, q))
            if q.get("leave"):
                await asyncio.sleep(q["leave"])
                work.cancel()
            out["text"], out["finish"] = await work
        except asyncio.CancelledError:
            out["left"] = True
        except openai.APIStatusError as e:
            out["status"], out["error"] = e.status_code, str(e)[:300]
        except Exception as e:  # the package wraps some errors of streams, and some not
            out["broken"] = f"{type(e).__name__}: {e}"[:300]
    print(json.dumps(out), flush=True)


async def main():
    client = openai.AsyncOpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0, timeout=600)
    places = asyncio.Semaphore(int(sys.argv[2]))
    work = []
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        work.append(asyncio.create_task(ask(client, places, json.loads(line))))
    await asyncio.gather(*work)


asyncio.run(main())
