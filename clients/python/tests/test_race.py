"""Writers of one document in several processes while the server is killed: each modify takes effect exactly once."""

import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from strata_documents import Client, testing

PROCESSES, TIMES, KILLS = (int(n) for n in os.environ.get("RACE", "4x100x3").split("x"))
WRITER = """
import sys
from strata_documents import Client
client = Client(sys.argv[1], retry_for=120, timeout=10)
for _ in range(int(sys.argv[2])):
    client.collection("c").modify("d", lambda content: {"n": (content or {"n": 0})["n"] + 1})
    print(end=".", flush=True)
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Race(unittest.TestCase):
    def test_each_takes_effect_once(self):
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["--data", f"{folder}/data", "--listen", f"127.0.0.1:{free_port()}"]
            server = testing.Server(arguments)
            package = str(pathlib.Path(sys.modules["strata_documents"].__file__).parent.parent)
            with open(f"{folder}/done", "wb") as done:
                writers = [subprocess.Popen([sys.executable, "-c", WRITER, server.target, str(TIMES)], stdout=done,
                                            env=dict(os.environ, PYTHONPATH=package)) for _ in range(PROCESSES)]
            try:
                kills = 0
                # At even shares of the work, so that it is not over before the last kill.
                while kills < KILLS and any(writer.poll() is None for writer in writers):
                    if os.path.getsize(f"{folder}/done") * (KILLS + 1) < PROCESSES * TIMES * (kills + 1):
                        time.sleep(0.005)
                        continue
                    time.sleep(random.uniform(0, 0.02))
                    server.kill()
                    server.close()
                    server = testing.Server(arguments)
                    kills += 1
                self.assertEqual([0] * PROCESSES, [writer.wait(300) for writer in writers])
                with Client(server.target) as client:
                    found = client.collection("c").get("d")
                print(f"race: {PROCESSES} x {TIMES} through {kills} kills: {found.content['n']}, version {found.version}")
                self.assertEqual((KILLS, PROCESSES * TIMES, PROCESSES * TIMES), (kills, found.content["n"], found.version))
            finally:
                for writer in writers:
                    writer.kill()
                    writer.wait()
                server.close()


if __name__ == "__main__":
    unittest.main()
