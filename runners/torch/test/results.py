"""The results of comparisons, by case, in a file that docs/results/tested.md is made of.

In: the versions that ran, the commit, a key of the files that the case depends on, and for each case a row of counts with the time that Medusa itself took of the restored
start. Out: the file, with these rows in place of older ones of the same cases. Rows of other versions are dropped: a page never mixes them.
"""

import datetime
import json
import os

COUNTS = "graphs", "nodes", "third_party", "pointers", "constants"


def counts(c):
    return {name: getattr(c, name) for name in COUNTS} | {"differences": len(c.differences)}


def own_time(path):
    """The time that Medusa itself took of a start, by the start's status."""
    with open(path, encoding="utf-8") as f:
        return {"milliseconds": round(json.load(f)["milliseconds"], 1)}


def since(before, after):
    """The share of one case of several."""
    return {name: after[name] - before[name] for name in after}


def rows(path, key):
    """The rows of cases that ran with the same files that they depend on now. key: of a case's name, or None."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as f:
        cases = json.load(f)["cases"]
    # mutant: results of other sources
    return {case: row for case, row in cases.items() if row.get("key", "") == key(case)}


def shown(path, key):
    """The rows of cases that ran without a difference."""
    return {case: row for case, row in rows(path, key).items() if not row["differences"]}


def versions(path):
    """The versions that ran."""
    with open(path, encoding="utf-8") as f:
        return json.load(f)["versions"]


def store(path, versions, rows, **stamp):
    """stamp: the commit, and the key of each row's case. The file has a line for each row."""
    held = {"versions": versions, "cases": {}}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            old = json.load(f)
        if old["versions"] == versions:
            held = old
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    today = datetime.date.today().isoformat()
    held["cases"] |= {case: {**row, "date": today, **stamp} for case, row in rows.items()}
    cases = ",\n".join(f"{json.dumps(case)}: {json.dumps(row)}" for case, row in sorted(held["cases"].items()))
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(f'{{"versions": {json.dumps(held["versions"])}, "cases": {{\n{cases}\n}}}}\n')
    os.replace(path + ".new", path)
