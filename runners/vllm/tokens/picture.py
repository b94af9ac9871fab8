"""A picture of a page that never ends to load, as the one of `medusa serve`.

    picture.py URL FILE

In: a page. Out: FILE, a PNG of the page some seconds after it was opened, taken by chromium. Fails: with the exception, if chromium does not start or answer.
"""

import base64
import json
import subprocess
import sys
import tempfile
import time
import urllib.request

from websockets.sync.client import connect

OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking", "--remote-debugging-port=0", "--window-size=1200,700"]
LOOK = 3  # seconds until events have come and are drawn
SECONDS = 60


def main():
    url, path = sys.argv[1:]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as data:
        browser = subprocess.Popen(["chromium", *OPTIONS, f"--user-data-dir={data}", url], stderr=subprocess.PIPE, text=True)
        try:
            address = next(line.split()[-1] for line in browser.stderr if line.startswith("DevTools listening on"))
            port = address.split(":")[2].split("/")[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=SECONDS) as answer:
                page = next(target for target in json.load(answer) if target["type"] == "page")
            with connect(page["webSocketDebuggerUrl"], max_size=None) as browsed:
                time.sleep(LOOK)
                image = ask(browsed, "Page.captureScreenshot", format="png")["data"]
        finally:
            browser.terminate()
            browser.wait(SECONDS)
    with open(path, "wb") as f:
        f.write(base64.b64decode(image))


def ask(browsed, method, **params):
    browsed.send(json.dumps({"id": 1, "method": method, "params": params}))
    while True:
        answer = json.loads(browsed.recv(timeout=SECONDS))
        if answer.get("id") == 1:
            return answer["result"]


if __name__ == "__main__":
    main()
