"""The first and the last step of `make test-tokens` and `make demo ENGINE=vllm`.

In: arguments of a command line. Out: where everything lies; whether all of Triton's kernels were made by the project's tools. Fails: as argparse does.
"""

import glob
import os
import subprocess
import sys
import types

from case import HERE

ROOT = os.path.join(HERE, "..", "..", "..")


def add_places(p):
    p.add_argument("--python", required=True, help="interpreter of the virtual environment that holds vLLM")
    p.add_argument("--libraries", required=True, help="folder of the runtime and the stand-ins")
    p.add_argument("--build", required=True, help="folder that holds medusa, tokens, lib/, simulated/ and toolchain/")
    p.add_argument("--work", required=True, help="folder for what the runs leave")


def settings(args, title, controls=()):
    build = os.path.abspath(args.build)
    return types.SimpleNamespace(
        title=title,
        python=os.path.abspath(args.python),
        libraries=os.path.abspath(args.libraries),
        build=build,
        work=os.path.abspath(args.work),
        tools=os.path.join(build, "toolchain"),
        medusa=os.path.join(build, "medusa"),
        spoil=os.path.join(build, "tokens"),
        controls=list(controls),
    )


def of_toolchain(s):
    """Whether every kernel of Triton's in the caches, which this work began without, was made by the project's tools."""
    check = os.path.join(ROOT, "simgpu", "toolchain", "check_use.py")
    own = [folder for name in ("caches", "elsewhere") for folder in glob.glob(os.path.join(s.work, "*", name))]
    caches = [os.path.join(s.work, name) for name in ("triton", "cache")] + own
    return subprocess.run([sys.executable, check, os.path.join(s.tools, "libdevice.bc"), *caches], check=False).returncode == 0
