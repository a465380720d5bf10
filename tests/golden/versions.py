# SPDX-License-Identifier: Apache-2.0
"""The versions of the libraries that made a golden, for its first lines. Used by the make_*.py in this folder."""
import importlib.metadata
import sys

LIBRARIES = ("torch", "torchvision", "transformers", "numpy")


def all():  # only libraries that the caller imported; the part after "+" names a build, not a version
    return {each: importlib.metadata.version(each).split("+")[0] for each in LIBRARIES if each in sys.modules}


def text():
    return ", ".join(f"{name} {version}" for name, version in all().items())
