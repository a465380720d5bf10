# SPDX-License-Identifier: Apache-2.0
"""Writes records as JSON lines, one file per process. Thread-safe. Never raises."""

import atexit
import functools
import json
import os
import sys
import threading
import time

_folder = None
_file = None
_lock = threading.Lock()
_told = set()
_endings = []


def begin():
    """Whether there is a folder to write to."""
    global _folder
    _folder = os.environ.get("STOKER_DOCTOR_RECORDS")
    if not _folder:
        return False
    os.register_at_fork(after_in_child=_in_child)
    _write_start()
    return True


def folder():
    return _folder


def write(kind, **fields):
    """Appends a record with its time: seconds of the clock that all processes share."""
    global _file
    try:
        line = json.dumps({"kind": kind, "at": time.monotonic(), **fields}, default=str) + "\n"
        with _lock:
            if _folder is None:
                return
            if _file is None:
                path = os.path.join(_folder, f"{os.getpid()}.jsonl")
                _file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.write(_file, line.encode("utf-8", "replace"))
    except (OSError, MemoryError):
        pass  # a full disk, no memory, or `stoker doctor` has ended: the script goes on


def tell(text):
    """Has `stoker doctor` say it at once, if it says things."""
    try:
        path = os.path.join(_folder, f"tell-{os.getpid()}")
        with open(f"{path}.part", "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        os.rename(file.name, f"{path}.txt")  # whole, or not there
    except OSError:
        pass


def others_train():
    """Whether another process of the script has made steps."""
    try:
        for entry in os.scandir(_folder):
            if entry.name.endswith(".jsonl") and entry.name != f"{os.getpid()}.jsonl":
                with open(entry.path, "rb") as file:
                    if b'"kind": "training"' in file.read(1 << 20):
                        return True
    except OSError:
        pass
    return False


def at_end(function):
    """Calls it when the process ends: by itself, by os._exit() or as a child of multiprocessing; not by a signal."""
    if not _endings:
        atexit.register(_end)
        os._exit = _before_exit(os._exit)
    _endings.append(function)


def _end():
    for function in _endings:
        careful(function)()


def _before_exit(own):
    @functools.wraps(own)
    def wrapper(status):
        _end()
        own(status)

    return wrapper


def careful(function):
    """The function, with its errors written down instead of raised: the script must not notice them."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            trouble(function.__name__, error)

    return wrapper


def trouble(where, error):
    """Written once for each place."""
    if where not in _told:
        _told.add(where)
        write("trouble", text=f"{where}: {type(error).__name__}: {error}")


def _write_start():
    write(
        "process",
        pid=os.getpid(),
        parent=os.getppid(),
        argv=[*getattr(sys, "orig_argv", [])][:100],
        python=sys.version.split()[0],
        cores=len(os.sched_getaffinity(0)),
        memory=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
    )


def _in_child():
    global _file, _lock
    _lock = threading.Lock()
    if _file is not None:
        os.close(_file)
        _file = None
    _write_start()
