# SPDX-License-Identifier: Apache-2.0
"""Times torch's DataLoader: what the training waits for, and what its workers do meanwhile."""

import functools
import os
import threading
import time
import zlib

from . import record, stacks
from .calls import Calls
from .ledger import ledger, timed
from .steps import steps

_EACH, _EARLY, _EARLY_FOR = 1.0, 0.25, 10.0  # seconds between two records; at the start they are denser, for so long
_WATCHED = range(2, 5)  # batches whose calls are watched
_FIRSTS = 3  # batches whose content is noted
_LOOK = 50  # batches between two looks into one


class Loading:
    """What one process spent on loading, since it started: seconds, of them on a core, of them waiting for one."""

    def __init__(self):
        self.samples = self.batches = 0
        self.stages = {"samples": [0.0, 0.0, 0.0], "collate": [0.0, 0.0, 0.0]}
        self._worker, self._threads = None, 0
        self._calls, self._calls_seconds = None, 0.0
        self.idle = ""  # the ledger's stage between two batches
        self.firsts = []
        self.read = 0  # bytes of files, in memory or not
        self._at = self._start = time.monotonic()

    @record.careful
    def look(self, torch, data):
        """Notes a number of the content of the first batches: workers should not make the same ones."""
        if len(self.firsts) < _FIRSTS:
            tensor = _first_tensor(torch, data)
            self.firsts.append(None if tensor is None else digest(torch, tensor))

    def begin_calls(self):
        if self.batches in _WATCHED:
            self._calls = self._calls or Calls()
            self._calls_since = time.perf_counter()
            self._calls.begin()

    def end_calls(self):
        if self._calls is not None:
            self._calls.end()
            self._calls_seconds += time.perf_counter() - self._calls_since
            if self.batches == _WATCHED[-1]:
                self._calls.write("loader", self._calls_seconds)
                self._calls = None

    def add(self, stage, spent):
        for i, value in enumerate(spent):
            self.stages[stage][i] += value

    @record.careful
    def batch_ended(self, samples, torch):
        self.samples += samples
        self.batches += 1
        now = time.monotonic()
        if self.batches == 1:
            self._worker = torch.utils.data.get_worker_info()
            if self._worker is not None:
                self.idle = ledger.stage = "waiting"
                record.at_end(self.write)
                stacks.Looks()
        if now - self._at >= (_EARLY if now - self._start < _EARLY_FOR else _EACH) or self.batches == 1:
            self._at = now
            self._threads = torch.get_num_threads()
            self.write()

    @record.careful
    def write(self):
        record.write(
            "loading",
            worker=None if self._worker is None else self._worker.id,
            samples=self.samples,
            batches=self.batches,
            stages=self.stages,
            threads=self._threads,
            read_bytes=self.read,
            **({} if self._worker is None else _memory()),
            firsts=self.firsts,
            **({} if self._worker is None or self.batches > 1 else {"cores": sorted(os.sched_getaffinity(0))}),
        )


def digest(torch, tensor):
    """A number of a tensor's content, of any dtype; it is in the memory of the host."""
    return zlib.crc32(tensor.detach().reshape(-1).contiguous().view(torch.uint8).numpy())


class _Moment:
    def __init__(self):
        self.wall, self.cpu, self.waited = time.perf_counter(), time.thread_time(), _waited()

    def since(self):
        now = _Moment()
        return now.wall - self.wall, now.cpu - self.cpu, now.waited - self.waited


_own_thread = threading.local()  # files of the kernel about this thread, which stay open


def _kernel_file(path):
    """The words of such a file; none if there is no file."""
    files = _own_thread.__dict__
    try:
        if path not in files:
            files[path] = os.open(f"/proc/self/task/{threading.get_native_id()}/{path}", os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(files[path], 100, 0).split()
    except OSError:
        return []


def _waited():
    """Seconds that this thread was ready to run, without a core."""
    words = _kernel_file("schedstat")
    return 1e-9 * int(words[1]) if len(words) > 1 else 0.0


def _read_bytes():
    """That this thread asked the kernel for: of files, in memory or not, and of pipes."""
    words = _kernel_file("io")
    return int(words[1]) if len(words) > 1 else 0


_loading = None  # of this process


def _own():
    global _loading
    if _loading is None:
        _loading = Loading()
    return _loading


def _timed_fetch(torch, fetch):
    @functools.wraps(fetch)
    def wrapper(self, index):
        own = _own()
        if not getattr(self, "_stoker_collate", False):
            self._stoker_collate = True
            self.collate_fn = _timed_collate(self.collate_fn)
        before = [*own.stages["collate"]]
        read = _read_bytes()
        start = _Moment()
        ledger.stage = "samples"
        own.begin_calls()
        try:
            data = fetch(self, index)
        finally:
            own.end_calls()
            ledger.stage = own.idle
            whole = start.since()
            own.read += _read_bytes() - read
            own.add("samples", [all - (now - was) for all, now, was in zip(whole, own.stages["collate"], before)])
        own.look(torch, data)
        own.batch_ended(len(index) if isinstance(index, (list, tuple)) else 1, torch)
        return data

    return wrapper


def _timed_collate(collate):
    def timed_collate(data):
        start = _Moment()
        ledger.stage = "collate"
        try:
            return collate(data)
        finally:
            ledger.stage = "samples"
            _own().add("collate", start.since())

    return timed_collate


def _settings(loader):
    context = getattr(loader, "multiprocessing_context", None)
    if context is None:
        import multiprocessing as context
    return {
        "loader": id(loader),
        "where": getattr(loader, "_stoker_where", ""),
        "workers": loader.num_workers,
        "prefetch": loader.prefetch_factor,
        "pin": bool(loader.pin_memory),
        "persistent": bool(loader.persistent_workers),
        "batch": loader.batch_size,
        "start_method": context.get_start_method(),
        "dataset": type(loader.dataset).__name__,
        "samples": _length(loader.dataset),
        "batches": _length(loader),
        "iterable": not hasattr(type(loader.dataset), "__getitem__"),
    }


def _length(of):
    try:
        return len(of)
    except Exception:
        return None


def _contents(torch, data):
    """Tensors and bytes of a batch."""
    count = size = 0
    stack = [data]
    while stack and count < 100_000:
        each = stack.pop()
        if isinstance(each, torch.Tensor):
            count += 1
            size += each.numel() * each.element_size()
        elif isinstance(each, dict):
            stack.extend(each.values())
        elif isinstance(each, (list, tuple)):
            stack.extend(each)
    return count, size


def _noted_init(own):
    @functools.wraps(own)
    def wrapper(self, *args, **kwargs):
        own(self, *args, **kwargs)
        _note_place(self)

    return wrapper


@record.careful
def _note_place(loader):
    loader._stoker_where = stacks.caller()


def _first_tensor(torch, data):
    while isinstance(data, (dict, list, tuple)) and len(data) > 0:
        data = next(iter(data.values())) if isinstance(data, dict) else data[0]
    plain = isinstance(data, torch.Tensor) and data.device.type == "cpu" and data.layout == torch.strided
    return data.detach() if plain and data.numel() > 0 else None


def _memory():
    """Bytes that only this process has, and those that it shares with its parent until one of them writes."""
    try:
        with open("/proc/self/smaps_rollup", "rb") as file:
            sizes = dict(line.split()[:2] for line in file.readlines()[1:])
        return {"private_bytes": int(sizes[b"Private_Dirty:"]) * 1024, "shared_bytes": int(sizes[b"Shared_Dirty:"]) * 1024}
    except (OSError, KeyError, ValueError):
        return {}


def _timed_start(own):
    """Some loaders have an __iter__ of their own and call this one."""

    @functools.wraps(own)
    def wrapper(self):
        starts = self.num_workers > 0
        ledger.enter("loader_start" if starts else "fetch")
        start = time.monotonic()
        try:
            result = own(self)
        finally:
            ledger.leave()
        _note_loader(self, result, start if starts else None)
        return result

    return wrapper


def _timed_iter(own):
    """Persistent workers begin an epoch without a start; and some loaders have a _get_iterator of their own."""

    @functools.wraps(own)
    def wrapper(self):
        ledger.enter("fetch")
        try:
            result = own(self)
        finally:
            ledger.leave()
        if not hasattr(result, "_stoker_loader"):
            _note_loader(self, result, None)
        return result

    return wrapper


_seen = {}  # settings of loaders
ahead = 0  # batches that workers may make before they are asked for, while a trial watches


@record.careful
def _note_loader(loader, iterator, start):
    iterator._stoker_start, iterator._stoker_loader = start, id(loader)
    settings = _settings(loader)
    if settings != _seen.get(id(loader)):
        _seen[id(loader)] = settings
        record.write("loader", **settings)


@record.careful
def _note_batch(torch, iterator, data):
    iterator._stoker_batches = count = getattr(iterator, "_stoker_batches", 0) + 1
    if count % _LOOK == 2:
        tensors, size = _contents(torch, data)
        record.write("batch", loader=getattr(iterator, "_stoker_loader", 0), tensors=tensors, bytes=size)


def _timed_next(torch, own):
    @functools.wraps(own)
    def wrapper(self):
        start = getattr(self, "_stoker_start", None)
        ledger.enter("fetch" if start is None else "loader_start")
        try:
            data = own(self)
        finally:
            ledger.leave()
        if start is not None:
            self._stoker_start = None
            record.write("loader_start", loader=self._stoker_loader, seconds=time.monotonic() - start)
        _note_batch(torch, self, data)
        steps.fetched(None if start is None else self._stoker_loader)
        return data

    return wrapper


def watch(torch):
    from torch.utils.data import DataLoader, dataloader
    from torch.utils.data._utils import fetch

    for fetcher in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        fetcher.fetch = _timed_fetch(torch, fetcher.fetch)
    workers = dataloader._MultiProcessingDataLoaderIter
    workers._shutdown_workers = timed("loader_start", workers._shutdown_workers)  # the end of an epoch, then
    DataLoader.__init__ = _noted_init(DataLoader.__init__)
    DataLoader.__iter__ = _timed_iter(DataLoader.__iter__)
    DataLoader._get_iterator = _timed_start(DataLoader._get_iterator)
    dataloader._BaseDataLoaderIter.__next__ = _timed_next(torch, dataloader._BaseDataLoaderIter.__next__)
    os.register_at_fork(after_in_child=_in_child)


def watch_steps(torch):
    """For a trial: notes where loaders are made and that a batch came, and measures nothing."""
    from torch.utils.data import DataLoader, dataloader

    def note_start(own):
        @functools.wraps(own)
        def wrapper(self):
            global ahead
            ahead = max(ahead, self.num_workers * (self.prefetch_factor or 0))
            return own(self)

        return wrapper

    def note_batch(own):
        @functools.wraps(own)
        def wrapper(self):
            data = own(self)
            steps.fetched()
            return data

        return wrapper

    DataLoader.__init__ = _noted_init(DataLoader.__init__)
    DataLoader._get_iterator = note_start(DataLoader._get_iterator)
    dataloader._BaseDataLoaderIter.__next__ = note_batch(dataloader._BaseDataLoaderIter.__next__)


def _in_child():
    global _loading, _own_thread
    _loading = None
    _own_thread = threading.local()  # the parent's file tells of the parent
