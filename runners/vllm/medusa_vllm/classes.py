"""Which of vLLM's variables and settings an artifact depends on: the tables variables.txt and settings.txt beside this file.

In: a table. Out: for each name its class, the reason, and which releases have it. Fails: with ValueError for a line that belongs to no table.
"""

import collections
import functools
import os

COUNTS, CONTENTS, DEPLOYMENT = CLASSES = "counts", "contents", "deployment"
VARIABLES, SETTINGS = "variables.txt", "settings.txt"
ALL, NONE = "", "none"  # of the supported releases

Row = collections.namedtuple("Row", "kind reason releases")


@functools.cache
def table(file):
    with open(os.path.join(os.path.dirname(__file__), file), encoding="utf-8") as f:
        return parse(f)


def parse(lines):
    """Rows by name. Behind "Class:", names are those of the class's fields."""
    rows, kind, reason, owner = {}, None, "", ""
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            kind, _, reason = line.strip().partition(" ")
            if kind not in CLASSES or not reason:
                raise ValueError(f"read table: {line.strip()!r} begins no group (CLASS REASON)")
            owner = ""
            continue
        for word in line.split():
            if word.endswith(":"):
                owner = word.removesuffix(":") + "."
                continue
            name, _, releases = word.partition("@")
            # mutant: names of a table occur once
            if owner + name in rows or kind is None:
                raise ValueError(f"read table: {owner}{name} has no group, or two")
            rows[owner + name] = Row(kind, reason, releases)
    return rows


def counts(rows, name):
    """A name that no table has counts: nobody has decided yet that it does not."""
    # mutant: unknown name counts
    return name not in rows or rows[name].kind == COUNTS


def known(row, release, releases):
    """Whether a supported release has the name. releases: all supported ones, in order."""
    if row.releases in (ALL, NONE):
        return row.releases == ALL
    place = [minor(r) for r in releases]
    for span in row.releases.split(","):
        first, to, last = span.partition("-")
        last = last if to else first
        # mutant: releases that have a name
        if place.index(first or place[0]) <= place.index(minor(release)) <= place.index(last or place[-1]):
            return True
    return False


def minor(release):
    return ".".join(release.split(".")[:2])
