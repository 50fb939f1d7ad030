"""HTTP servers of one reply function, in this process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple

JSON = "application/json"


class Reply(NamedTuple):
    """A reply with its body, status, media type and other headers."""

    body: bytes
    status: int = 200
    kind: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


@contextmanager
def answering(reply: Callable[[str, bytes], Reply | None]) -> Iterator[str]:
    """Serve what a function gives for the path and body of a POST; None hangs up.

    Yields:
        The server's address.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found = reply(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            if found is None:
                return
            with suppress(BrokenPipeError, ConnectionResetError):  # the client gave up waiting
                self.send_response(found.status)
                self.send_header("Content-Type", found.kind)
                self.send_header("Content-Length", str(len(found.body)))
                for name, value in found.headers:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(found.body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
