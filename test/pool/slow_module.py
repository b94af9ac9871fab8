"""A module whose import ends only once the process has been asked for, and then some.

In: the folder NEWS. Out: a file there. Fails: ImportError if the engine does not ask for the process
meanwhile.
"""

import os
import time

folder = os.environ["NEWS"]
open(os.path.join(folder, "importing"), "w", encoding="utf-8").close()
end = time.monotonic() + float(os.environ["PATIENCE"])
while not os.path.exists(os.path.join(folder, "asking")):
    if time.monotonic() > end:
        raise ImportError("nothing asks for this")
    time.sleep(0.01)
time.sleep(0.3)
PID = os.getpid()
if os.environ.get("FAILS"):
    raise ImportError("as the test asks")
