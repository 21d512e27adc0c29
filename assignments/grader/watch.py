"""See what a submission uses, and end what is too much."""

import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress

import psutil


class Watch:
    """Look at what the processes below this one use, and end what is too much."""

    def __init__(self, limits, home, group):
        self.limits, self.home, self.group = limits, home, group
        self.reason = ""
        self._seen = {}
        self._free = shutil.disk_usage(home).free
        self._most_disk = min(limits.disk_megabytes * 1_000_000, self._free // 2)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self):
        while not self._stopped.wait(0.1):
            self._look_once()

    def _look_once(self):
        processes = psutil.Process().children(recursive=True)
        self._seen.update((process.pid, process) for process in processes)
        used = count = 0
        for process in processes:
            try:
                used += process.memory_info().rss
                count += process.status() != psutil.STATUS_ZOMBIE
            except psutil.Error:
                continue
        if used > self.limits.megabytes * 1_000_000:
            self.reason = f"used more than {self.limits.megabytes} MB of memory"
        elif count > self.limits.processes:
            self.reason = f"started more than {self.limits.processes} processes"
        elif self._wrote_too_much(processes):
            self.reason = f"wrote more than {self._most_disk // 1_000_000} MB"
        else:
            return
        self.end_all()

    def _wrote_too_much(self, processes):
        """Return whether it is this submission that fills the disk, if anything does."""
        with suppress(OSError, ValueError, IndexError):
            if self._free - shutil.disk_usage(self.home).free < self._most_disk:
                return False
            # What they have written may be in files that have lost their names, and what is in
            # the folder may be of processes that have ended.
            return max(sum(map(_written, processes)), _size(self.home)) > self._most_disk
        return False

    def end_all(self):
        """Kill all processes that were ever seen below this one."""
        if hasattr(os, "killpg"):  # at once, however fast they multiply
            with suppress(OSError):
                os.killpg(self.group, signal.SIGKILL)
        for process in list(self._seen.values()):
            try:
                if process.is_running():  # False also where the number belongs to another now
                    process.kill()
            except psutil.Error:
                continue

    def stop(self):
        self._stopped.set()
        self._thread.join()
        until = time.monotonic() + 5
        while time.monotonic() < until:  # one that is ended may have started another
            self._look_once()
            self.end_all()
            if not any(map(_runs, psutil.Process().children(recursive=True))):
                return


def _runs(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _written(process):
    """Return the bytes that a process has written, where the system counts them."""
    try:
        counts = process.io_counters()
        return max(counts.write_bytes, getattr(counts, "write_chars", 0))
    except (AttributeError, psutil.Error):
        return 0


def _size(folder):
    """Return the bytes in a folder, however deep and whatever its rights."""
    subprocess.run(["chmod", "-R", "u+rwX", folder], capture_output=True, check=False)  # noqa: S603, S607
    sizes = subprocess.run(["du", "-sk", folder], capture_output=True, text=True, check=False)  # noqa: S603, S607
    return int(sizes.stdout.split()[0]) * 1024
