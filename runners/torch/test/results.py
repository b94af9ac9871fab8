"""The results of comparisons, by case, in a file that docs/results/tested.md is made of.

In: the versions that ran, the commit, and for each case a row of counts with the time that Medusa itself took of the restored start. Out: the file, with these rows in place
of older ones of the same cases. Rows of other versions are dropped: a page never mixes them.
"""

import datetime
import json
import os

COUNTS = "graphs", "nodes", "third_party", "pointers", "constants"


def counts(c):
    return {name: getattr(c, name) for name in COUNTS} | {"differences": len(c.differences)}


def own_time(path):
    """What Medusa itself took of a start, by its status."""
    with open(path, encoding="utf-8") as f:
        return {"milliseconds": round(json.load(f)["milliseconds"], 1)}


def since(before, after):
    """The share of one case of several."""
    return {name: after[name] - before[name] for name in after}


def rows(path, commit):
    """The rows of cases that this commit has run. Without a commit, the sources have changes that no row is stamped with."""
    if not commit or not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as f:
        cases = json.load(f)["cases"]
    # mutant: results of another commit
    return {case: row for case, row in cases.items() if row.get("commit") == commit}


def shown(path, commit):
    """The rows of cases that this commit has shown, without a difference."""
    return {case: row for case, row in rows(path, commit).items() if not row["differences"]}


def versions(path):
    """The versions that ran."""
    with open(path, encoding="utf-8") as f:
        return json.load(f)["versions"]


def store(path, versions, rows, commit=""):
    held = {"versions": versions, "cases": {}}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            old = json.load(f)
        if old["versions"] == versions:
            held = old
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    today = datetime.date.today().isoformat()
    held["cases"] |= {case: {**row, "date": today, "commit": commit} for case, row in rows.items()}
    held["cases"] = dict(sorted(held["cases"].items()))
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(held, f, indent=1)
        f.write("\n")
    os.replace(path + ".new", path)
