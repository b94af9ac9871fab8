"""Files that one process writes and another one reads, each in its own time.

In: a path. Out: the JSON that lies there, or None. Fails: reading never; writing, as the file system does.
"""

import json
import os


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def write(path, value):
    """Replaces the file atomically."""
    new = f"{path}.{os.getpid()}"
    with open(new, "w", encoding="utf-8") as f:
        json.dump(value, f)
    os.replace(new, path)
