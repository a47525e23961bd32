r"""The built book as a web host serves it: from this machine alone, compressed with gzip, over HTTP/1.1.

    python -m tests.merit.serve 8000    until you stop it
"""

import gzip
import mimetypes
import sys
from contextlib import contextmanager
from functools import cache
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from tests.book.pages import location

COMPRESSED = {".html", ".css", ".js", ".json", ".svg", ".txt", ".xml", ".csv"}
KEPT = 600  # s: what hosts of static pages commonly allow


@cache
def contents(file, compress):
    """What is sent for a file; kept, since a host does not compress at each visit, either."""
    data = Path(file).read_bytes()
    return gzip.compress(data, 6, mtime=0) if compress else data


def sent_bytes(file):
    """How much of a file goes over the wire."""
    return len(contents(str(file), Path(file).suffix in COMPRESSED))


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send_head(self):
        import io

        path = Path(self.translate_path(self.path))
        if path.is_dir():
            path /= "index.html"
        if not path.is_file():
            self.send_error(404)
            return None
        compress = path.suffix in COMPRESSED and "gzip" in self.headers.get("Accept-Encoding", "")
        data = contents(str(path), compress)
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        text = kind.startswith("text/") or path.suffix in {".js", ".json", ".svg"}
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if text else kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", f"max-age={KEPT}")
        self.send_header("Vary", "Accept-Encoding")
        if compress:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        return io.BytesIO(data)

    def log_message(self, *_):
        """Silence: what is asked for is in Lighthouse's report."""


@contextmanager
def serving(root, port=0):
    """The address under which `root` is served."""
    server = ThreadingHTTPServer(
        ("127.0.0.1", port), lambda *arguments: Handler(*arguments, directory=str(root))
    )
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    with serving(location(), int(sys.argv[1]) if sys.argv[1:] else 8000) as address:
        print(address, flush=True)
        Thread(target=lambda: None).join()
        try:
            input()
        except (EOFError, KeyboardInterrupt):
            pass
