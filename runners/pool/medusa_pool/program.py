"""Runs a command line of the interpreter as the interpreter would.

In: arguments after the interpreter's options: a script, `-m MODULE` or `-c TEXT`, and the program's own. Out: the program, as __main__. Fails: as the
program does; a traceback shows the program's frames only.
"""

import io
import os
import runpy
import sys
import types
from importlib.machinery import SourceFileLoader


def arguments(command):
    """sys.argv as the program's first line sees it."""
    if command[0] in ("-c", "-m"):
        return [command[0], *command[2:]]
    return list(command)


def first_place(command):
    """The folder that the interpreter puts first in sys.path, or None if there is none."""
    # mutant: places of modules in safe mode
    if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
        return None
    if command[0] == "-c":
        return ""
    if command[0] == "-m":
        return os.getcwd()
    return os.path.dirname(os.path.realpath(command[0]))


def run(command):
    sys.argv = arguments(command)
    place = first_place(command)
    if command[0] not in ("-c", "-m") and (os.path.isdir(command[0]) or not command[0].endswith(".py") and is_archive(command[0])):
        sys.path.insert(0, os.path.abspath(command[0]))
        return guarded(lambda: runpy._run_module_as_main("__main__", alter_argv=False))
    if place is not None:
        sys.path.insert(0, place)
    if command[0] == "-m":
        return guarded(lambda: runpy._run_module_as_main(command[1]))
    main = types.ModuleType("__main__")
    main.__builtins__ = sys.modules["builtins"]
    sys.modules["__main__"] = main
    if command[0] == "-c":
        from importlib.machinery import BuiltinImporter

        main.__loader__ = BuiltinImporter
        return guarded(lambda: exec(compile(command[1], "<string>", "exec"), main.__dict__))
    path = os.path.abspath(command[0])
    main.__file__, main.__cached__, main.__loader__ = path, None, SourceFileLoader("__main__", path)
    return guarded(lambda: exec(compile(source(command[0]), path, "exec"), main.__dict__))


def source(path):
    with io.open_code(os.path.abspath(path)) as f:
        return f.read()


def is_archive(path):
    import zipimport

    try:
        zipimport.zipimporter(path)
    except zipimport.ZipImportError:
        return False
    return True


def guarded(program):
    """An exception ends the interpreter as ever, but is printed here, without the frames below the program's."""
    try:
        program()
    except SystemExit:
        raise
    except BaseException as e:
        trace = e.__traceback__
        while trace and trace.tb_frame.f_globals.get("__name__", "").startswith("medusa_pool."):
            trace = trace.tb_next
        sys.excepthook(type(e), e.with_traceback(trace), trace)
        sys.excepthook = lambda *_: None
        raise
