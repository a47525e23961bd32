r"""The built book as a web host serves it: from this machine alone, compressed with gzip, over HTTP/1.1."""

import gzip
import io
import mimetypes
from contextlib import contextmanager
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

COMPRESSED = {".html", ".css", ".js", ".json", ".svg", ".txt", ".xml", ".csv"}
KEPT = 600  # s that a browser may keep a file: what hosts of static pages commonly say


@cache
def contents(file, compress):
    """What is sent for a file; kept, since a host does not compress at each visit, either."""
    data = Path(file).read_bytes()
    return gzip.compress(data, 6, mtime=0) if compress else data


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send_head(self):
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            path /= "index.html"
        if not path.is_file():
            self.send_error(404)
            return None
        compress = path.suffix in COMPRESSED and "gzip" in self.headers.get("Accept-Encoding", "")
        data = contents(str(path), compress)
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if path.suffix in COMPRESSED else kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", f"max-age={KEPT}")
        self.send_header("Vary", "Accept-Encoding")
        if compress:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        return io.BytesIO(data)

    def log_message(self, *_):
        """Silence: Lighthouse's report says what was asked for."""


@contextmanager
def serving(root):
    """The address under which `root` is served, as long as the context lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(root)))
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
