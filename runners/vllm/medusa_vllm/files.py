"""Files that another process writes, in its own time.

In: a path. Out: the JSON that lies there, or None. Fails: nothing.
"""

import json


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return None
