# SPDX-License-Identifier: Apache-2.0
"""Gives what a test starts a fresh cache folder in place of the person's own. OUTSIDE is the environment for tools that look
for torch and packages in that one."""
import atexit
import os
import tempfile

OUTSIDE = dict(os.environ)
_folder = tempfile.TemporaryDirectory(prefix="stoker-cache-")
atexit.register(_folder.cleanup)
os.environ["STOKER_CACHE"] = _folder.name
