# SPDX-License-Identifier: Apache-2.0
"""Gives the programs that a test starts a fresh cache folder instead of the user's. OUTSIDE is the environment for tools that
look for torch and packages in the user's cache."""
import atexit
import os
import tempfile

OUTSIDE = dict(os.environ)
_folder = tempfile.TemporaryDirectory(prefix="stoker-cache-")
atexit.register(_folder.cleanup)
os.environ["STOKER_CACHE"] = _folder.name
