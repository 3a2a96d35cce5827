"""A server for a test: in memory, on a port of its own, gone afterwards."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from typing import Any, Iterable, Optional


class Server:
    """`with Server() as server: Client(server.target)`. The program is STRATAD of the environment, else stratad on PATH."""

    def __init__(self, arguments: Iterable[str] = ("--engine", "memory", "--listen", "127.0.0.1:0"), program: Optional[str] = None) -> None:
        program = program or os.environ.get("STRATAD") or shutil.which("stratad")
        if not program:
            raise FileNotFoundError("there is no stratad: name it in STRATAD, or put it on PATH")
        self._log = tempfile.NamedTemporaryFile(prefix="stratad-")
        self._process = subprocess.Popen([program, *arguments], stdout=self._log, stderr=self._log, stdin=subprocess.DEVNULL)
        try:
            self.target = self._listening()
        except BaseException:
            self.close()
            raise

    def _listening(self) -> str:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with open(self._log.name, "rb") as log:
                said = log.read().decode("utf-8", "replace")
            found = re.search(ADDRESS, said)
            if found:
                return found.group(1)
            if self._process.poll() is not None:
                raise RuntimeError(f"stratad ended: {said}")
            time.sleep(0.01)
        raise RuntimeError(f"stratad does not serve: {said}")

    def kill(self) -> None:
        """As kill -9 does."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        self._log.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


ADDRESS = r"serving strata.v1 on (\S+) \("
