# SPDX-License-Identifier: Apache-2.0
"""Notes what only the Python program knows about its training, for `stoker doctor -- python train.py`.

Loaded by sitecustomize.py into every Python process of the script, before the script. Writes one file of JSON lines per
process into the folder STOKER_DOCTOR_RECORDS (docs/doctor-script.md). Draws no random number, changes
no tensor, and no error of its own reaches the script. CPython 3.10 and later, torch 2.4 and later.
"""

from . import imports, record


def start():
    """Waits for the script to import torch. Does nothing without the folder for records."""
    if record.begin():
        imports.after("torch", _watch)


def _watch(torch):
    from . import burst, calls, history, loader, memory, numerics, page_faults, pauses, ranks, stacks, steps, stillness, switches, trial

    record.write("torch", version=torch.__version__)
    trying = trial.wanted()
    watches = [part.watch for part in (steps, loader, pauses, switches, stacks, calls, numerics, history, ranks, memory, page_faults, stillness, burst)]
    if trying is not None and not trying["watch"]:
        watches = [steps.watch, loader.watch_steps]
    for function in watches:
        try:
            function(torch)
        except Exception as error:  # a later torch may lack what we hook: the other parts still tell something
            record.write("trouble", text=f"{function.__module__}: {type(error).__name__}: {error}")
    if trying is not None:
        trial.apply(torch, trying["changes"])
        trial.measure(trying["steps"], trying["seconds"])
