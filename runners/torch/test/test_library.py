"""libmedusa.so outside of a restored start: an absent Medusa, misuse, a fork. Needs a folder of libraries in MEDUSA_BUILD."""

import os
import subprocess
import sys
import unittest

LIBRARY = os.path.join(os.environ.get("MEDUSA_BUILD", "build"), "lib", "libmedusa.so")
MISUSE = -3


def in_process(code, **variables):
    """Runs code with the library as `lib`, and returns its output."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("MEDUSA_")} | variables
    head = f"import ctypes, os; lib = ctypes.CDLL({os.path.abspath(LIBRARY)!r}); lib.medusa_session_error.restype = ctypes.c_char_p\n"
    return subprocess.run([sys.executable, "-c", head + code], env=env, capture_output=True, text=True, check=True).stdout


class TestLibrary(unittest.TestCase):
    def test_absent(self):
        self.assertEqual(in_process("print(lib.medusa_session_open(), lib.medusa_session_restoring())"), "0 0\n")

    def test_before_open_and_twice(self):
        out = in_process("print(lib.medusa_session_restoring()); lib.medusa_session_open(); print(lib.medusa_session_open())")
        self.assertEqual(out, f"{MISUSE}\n{MISUSE}\n")

    def test_contradicting_environment(self):
        out = in_process("print(lib.medusa_session_open(), lib.medusa_session_error().decode())", MEDUSA_RUN="restore")
        self.assertTrue(out.startswith("-1 ") and "MEDUSA_ARTIFACT" in out, out)

    def test_environment_of_the_moment(self):
        """Go's own copy is from the start of the process, and lost if that has changed its title."""
        out = in_process("os.environ['MEDUSA_RUN'] = 'restore'\nprint(lib.medusa_session_open())")
        self.assertEqual(out, "-1\n")

    def test_forked_child(self):
        code = """
lib.medusa_session_open()
pid = os.fork()
if pid == 0:
    os._exit(7 if lib.medusa_session_restoring() == %d else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), lib.medusa_session_restoring())
""" % MISUSE
        self.assertEqual(in_process(code), "7 0\n")


if __name__ == "__main__":
    unittest.main()
