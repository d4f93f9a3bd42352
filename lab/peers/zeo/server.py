"""A ZEO server as its documentation starts one, `runzeo`, that says `ready` and goes when standard input ends."""

import argparse
import os
import socket
import subprocess
import sys
import time

PATIENCE_S = 50


def answers(host, port):
    try:
        socket.create_connection((host, port), timeout=1).close()
        return True
    except OSError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True, help="HOST:PORT to listen at")
    parser.add_argument("--file", required=True, help="where the objects are kept")
    asked = parser.parse_args()
    host, port = asked.address.rsplit(":", 1)
    runzeo = os.path.join(os.path.dirname(sys.executable), "runzeo")
    server = subprocess.Popen(
        [runzeo, "-a", asked.address, "-f", asked.file], stdin=subprocess.DEVNULL, stdout=sys.stderr
    )
    begun = time.monotonic()
    while not answers(host, int(port)):
        if server.poll() is not None or time.monotonic() - begun > PATIENCE_S:
            server.kill()
            sys.exit(f"no ZEO server at {asked.address}")
        time.sleep(0.05)
    print("ready", flush=True)
    sys.stdin.read()
    server.terminate()
    server.wait()


if __name__ == "__main__":
    main()
