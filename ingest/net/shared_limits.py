"""The limits per host, kept together by the processes of one machine, as locked files in a folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

POLL_SECONDS = 0.025  # between two looks for a free slot
GRACE_SECONDS = 0.06  # for which the last starter stands back: other processes look twice meanwhile

_STATE = struct.Struct("ddq")  # when the next request may start, until when none may, who started the last
_SWEPT = (
    4  # files looked at per start; a start makes three at most, so the folder shrinks as hosts fall silent
)
_SILENT = 60.0  # seconds without a start after which the times of a host are of no use
_OURS = re.compile(r"[0-9a-f]{64}\.(\d+|times)")  # the names of its files
_LONGEST = 3_600.0  # seconds; a time further ahead is of before the machine was started anew


@dataclass(frozen=True, slots=True)
class StartAnswer:
    """May a request start? With `handle` it has, until that is closed. Else the host is paused for `pause`
    seconds, or one should ask again after `wait`. `stand_back`: let another process go first."""

    handle: int | None = None
    wait: float = 0.0
    pause: float = 0.0
    stand_back: bool = False


class SharedHostLimits:
    """One file per slot of a host, locked while its request lasts, and one with the host's times. A process
    that dies lets go of its locks. No call waits; each raises OSError when the folder cannot be used. `clock`
    must be one clock for all, as the monotonic one of a machine is."""

    def __init__(self, folder: Path, per_host: int, spacing: float, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._per_host = per_host
        self._spacing = spacing
        self._clock = clock
        self._sweep = self._files()

    def start(self, host: str, *, stood_back: bool) -> StartAnswer:
        """Takes a slot if there is one and it is time. The process that started the last request of a host
        stands back once, or the others would find its slots taken again whenever they look."""
        self._sweep_some()
        name = self._name(host)
        slots = (_lock(self._folder / f"{name}.{number}") for number in range(self._per_host))
        slot = next((handle for handle in slots if handle is not None), None)
        if slot is None:
            return StartAnswer(wait=POLL_SECONDS)
        answer = StartAnswer(wait=POLL_SECONDS / 5)  # another process has the times just now
        try:
            times = _lock(self._folder / f"{name}.times")
            if times is not None:
                try:
                    answer = self._decide(times, slot, stood_back)
                finally:
                    os.close(times)
        finally:
            if answer.handle is None:
                os.close(slot)
        return answer

    def hold(self, host: str, seconds: float) -> bool:
        """Pauses the host. False: another process has the file just now; ask again."""
        times = _lock(self._folder / f"{self._name(host)}.times")
        if times is None:
            return False
        try:
            then, _, last = self._read(times)
            os.pwrite(times, _STATE.pack(then, self._clock() + seconds, last), 0)
        finally:
            os.close(times)
        return True

    def _decide(self, times: int, slot: int, stood_back: bool) -> StartAnswer:
        now = self._clock()
        then, paused, last = self._read(times)
        if paused > now:
            return StartAnswer(pause=paused - now)
        stand_back = last == os.getpid() and not stood_back
        if then > now or stand_back:
            return StartAnswer(wait=max(0.0, then - now), stand_back=stand_back)
        os.pwrite(times, _STATE.pack(now + self._spacing, 0.0, os.getpid()), 0)
        return StartAnswer(handle=slot)

    def _read(self, times: int) -> tuple[float, float, int]:
        kept = os.pread(times, _STATE.size, 0)
        if len(kept) < _STATE.size:
            return 0.0, 0.0, 0
        then, paused, last = _STATE.unpack(kept)
        now = self._clock()
        then = then if then <= now + self._spacing else 0.0
        return then, paused if paused <= now + _LONGEST else 0.0, last

    def _name(self, host: str) -> str:
        return hashlib.sha256(host.encode()).hexdigest()

    def _files(self) -> Iterator[str | None]:
        """Every file of a host, again and again; None between two rounds. Others keep things in the folder, too."""
        while True:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if _OURS.fullmatch(entry.name):
                        yield entry.path
            yield None

    def _sweep_some(self) -> None:
        """Removes files that nobody uses and that say nothing any more."""
        for _ in range(_SWEPT):
            path = next(self._sweep)
            handle = _lock(Path(path), create=False) if path is not None else None
            if path is None or handle is None:
                continue
            try:
                then, paused, _ = self._read(handle)
                if max(then + _SILENT, paused) <= self._clock():
                    Path(path).unlink()
            finally:
                os.close(handle)


def _lock(path: Path, *, create: bool = True) -> int | None:
    """Opens and locks a file. None: another has it, or it was removed while we waited for it."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
    try:
        handle = os.open(path, flags, 0o600)
    except FileNotFoundError:
        if create:
            raise
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:
        os.close(handle)
        raise
    if os.fstat(handle).st_nlink:
        return handle
    os.close(handle)
    return None
