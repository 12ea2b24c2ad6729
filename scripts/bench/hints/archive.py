"""The archive outside the store, from which inputs are staged in and to which results go.

    python -m scripts.bench.hints.archive ADDRESS NAME=BYTES ...

Serves made-up files over plain TCP, as bash can read them: a request is `get NAME`, or `put BYTES`
and the bytes; the answer is the file, or the checksum of what arrived.
"""

from __future__ import annotations

import hashlib
import socketserver
import sys

PORT = 9147
_OPEN = f"exec 3<>/dev/tcp/${{ARCHIVE:-127.0.0.1}}/{PORT} || exit 1\n"
FETCH = _OPEN + 'echo "get $1" >&3\ncat <&3 >"$1"\n'
PUT = _OPEN + '{ echo "put $(wc -c <"$1")"; cat "$1"; } >&3\ncat <&3\n'


class Handler(socketserver.StreamRequestHandler):
    """One request per connection."""

    def handle(self) -> None:
        """Send the file, or take one in and answer with its checksum."""
        verb, _, what = self.rfile.readline().decode().strip().partition(" ")
        if verb == "get":
            line = f"{what} of the archive\n".encode()
            size = SIZES[what]
            self.wfile.write((line * (size // len(line) + 1))[:size])
        elif verb == "put":
            told = hashlib.sha256(self.rfile.read(int(what))).hexdigest()
            self.wfile.write(told.encode() + b"\n")


class Server(socketserver.ThreadingTCPServer):
    """A connection per thread, for many nodes at once."""

    allow_reuse_address = True
    daemon_threads = True


SIZES: dict[str, int] = {}

if __name__ == "__main__":
    SIZES.update((n, int(s)) for n, s in (word.split("=") for word in sys.argv[2:]))
    with Server((sys.argv[1], PORT), Handler) as server:
        server.serve_forever()
