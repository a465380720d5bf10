# SPDX-License-Identifier: Apache-2.0
"""Python runs this file at its start, because `stoker doctor` put its folder on PYTHONPATH.

It hides any other sitecustomize, so it runs the next one on the path, and leaves sys.path as it would be without it.
"""

import importlib.machinery
import importlib.util
import os
import sys


def _leave_path(folder):
    sys.path[:] = [each for each in sys.path if os.path.realpath(each or os.curdir) != folder]


def _run_next():
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module  # what the script would find
        spec.loader.exec_module(module)


def _start():
    folder = os.path.dirname(os.path.realpath(__file__))
    try:
        import stoker_shim

        stoker_shim.start()
    except Exception:  # the script must run, whatever is wrong with us; then there are no records, which is said
        pass
    _leave_path(folder)
    _run_next()


_start()
