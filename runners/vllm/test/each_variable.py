"""Changes each variable of vLLM alone, and reads it by vLLM's own functions. Run by deployments.py in the environment of a release.

Out: one JSON object, with the numbers of variables that count and that do not. Fails: exit code 1 if a variable that counts is no factor with its name, or if another one is.
"""

import ast
import json
import os
import re
import sys

from medusa_vllm import classes, named
from vllm import envs

# One of these is another value than the default for each variable without a list of its own.
VALUES = "1", "0", "3", "0.5", "true", "false", "a", '{"a": 1}', "/nowhere"


def factors():
    return named.variables(envs.environment_variables)[0]


def changed(name, plain):
    """The factors that are others with another value of a variable."""
    values, found = list(VALUES), {}
    while values:
        os.environ[name] = values.pop(0)
        try:
            envs.environment_variables.get(name, lambda: None)()
            now = factors()
        except ValueError as e:
            # vLLM says which values it takes.
            values += ast.literal_eval(m[0]) if not found and (m := re.search(r"\[.*\]", str(e))) and len(values) < len(VALUES) else []
            continue
        except Exception:
            continue
        finally:
            del os.environ[name]
        found |= {k: v for k, v in now.items() if plain.get(k) != v}
    return found


def main():
    for name in [name for name in os.environ if name in envs.environment_variables]:
        del os.environ[name]
    rows, plain, wrong, counted, others = classes.table(classes.VARIABLES), factors(), [], 0, 0
    for name, row in rows.items():
        if name not in envs.environment_variables and row.releases != classes.NONE:
            continue
        if row.kind == classes.COUNTS:
            counted += 1
            if named.ENV + name not in changed(name, plain):
                wrong.append(f"{name} counts, and no value is a difference")
        elif row.kind == classes.DEPLOYMENT and name != "LOCAL_RANK":
            others += 1
            if found := changed(name, plain):
                wrong.append(f"{name} does not count, and changes {sorted(found)}")
    if wrong:
        sys.exit("\n".join(wrong))
    print(json.dumps({"counted": counted, "others": others}))


if __name__ == "__main__":
    main()
