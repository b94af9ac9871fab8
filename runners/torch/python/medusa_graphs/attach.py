"""A start that no command of Medusa's began, with MEDUSA_ARTIFACT in its environment, as a pod has it.

In: the environment, and the command `medusa` of this installation. Out: the environment that `medusa restore` gives an engine, for the processes that this
one starts from now on. A child process keeps what they use until this one has ended. Fails: never, unless MEDUSA_STRICT is set; one line says why the start is
native.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata

from . import contract

_HERE = os.path.dirname(os.path.abspath(__file__))
DISTRIBUTION = "medusa-graphs"
STRICT = 3  # exit status of a start that would be native, as medusa restore has it
_keeper = None  # its input ends with this process


def wanted():
    return bool(os.environ.get(contract.ENV_ARTIFACT)) and not os.environ.get(contract.ENV_RUN)


def attached():
    """Whether this process has prepared the start. It runs without the interposer itself."""
    return _keeper is not None


def attach():
    """To be called before the engine's processes are started, and once an engine is going to be."""
    global _keeper
    if not wanted():
        return
    command = _command()
    if command is None:
        return native("artifact_missing", "there is no medusa beside this package or in PATH, which prepares starts")
    # A signal of the terminal is for the engine.
    _keeper = subprocess.Popen([command, "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    line = _keeper.stdout.readline()
    if not line:
        code = _keeper.wait()
        # mutant: strict start that cannot be prepared
        if os.environ.get(contract.ENV_STRICT) == "1":
            sys.exit(code or 1)  # it has said why
        return native("internal", f"{command} hold ended with exit status {code}")
    for name, value in json.loads(line).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def native(reason, detail):
    """Makes the rest of this start native, for all processes of the engine."""
    print(f"medusa: native start: {reason}: {detail}", file=sys.stderr, flush=True)
    # mutant: strict start that is native
    if os.environ.get(contract.ENV_STRICT) == "1":
        sys.exit(STRICT)
    for name in contract.ENV_ARTIFACT, contract.ENV_RUN:
        os.environ.pop(name, None)
    os.environ[contract.ENV_NATIVE] = f"{reason}: {detail}"


def twice(found=None):
    """Why two installations do not serve one start, or None: the folder that a command puts on PYTHONPATH comes before a wheel's, and its command may be either."""
    found = metadata.distributions(name=DISTRIBUTION) if found is None else found
    places = {}
    for one in found:
        places.setdefault(one.version, str(one.locate_file("")))
    # mutant: two versions of Medusa
    if len(places) > 1:
        return "several versions of Medusa are installed: " + ", ".join(f"{version} in {place}" for version, place in places.items())
    return None


def _command():
    above = [os.path.normpath(os.path.join(_HERE, *[".."] * up)) for up in range(1, 5)]
    # A folder of pip install --target; an environment; an archive or build; make install.
    places = [os.path.join(above[0], "bin"), sysconfig.get_path("scripts"), above[2], os.path.join(above[3], "bin")]
    for path in (os.path.join(place, "medusa") for place in places):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return shutil.which("medusa")
