# SPDX-License-Identifier: Apache-2.0
"""Calls a function when the script has imported a module. Imports nothing by itself."""

import importlib.abc
import importlib.machinery
import sys

from . import record

_waiting = {}  # functions by module name


def after(name, function):
    """Calls function(module) once: now, if the module was imported, else right after its import. Its errors are noted."""
    function = record.careful(function)
    module = sys.modules.get(name)
    if module is not None:
        function(module)
        return
    if not _waiting:
        sys.meta_path.insert(0, _Finder)
    _waiting.setdefault(name, []).append(function)


class _Finder(importlib.abc.MetaPathFinder):
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _waiting:
            return None
        spec = None
        for finder in sys.meta_path:
            if finder is not _Finder and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    break
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, own):
        self._own = own

    def create_module(self, spec):
        return self._own.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._own  # as without us, for readers of resources
        self._own.exec_module(module)
        for function in _waiting.pop(module.__name__, []):
            function(module)
        if not _waiting and _Finder in sys.meta_path:
            sys.meta_path.remove(_Finder)

    def __getattr__(self, name):
        return getattr(self._own, name)
