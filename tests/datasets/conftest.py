"""A web server on this machine that answers as it is told."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from contrapca.datasets import _fetch


@dataclass
class Answer:
    body: bytes
    status: int
    missing: int  # bytes that are announced and not sent
    delay: float  # seconds before anything is sent
    length: bool  # whether the length is announced


class Server:
    """It gives the answers of a path one after the other, the last again and again; `asked` lists the paths."""

    def __init__(self):
        self.asked: list[str] = []
        self._answers: dict[str, list[Answer]] = defaultdict(list)
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append(self.path)
                answers = server._answers[self.path]
                answer = answers.pop(0) if len(answers) > 1 else answers[0]
                time.sleep(answer.delay)
                self.send_response(answer.status)
                if answer.length:
                    self.send_header("Content-Length", str(len(answer.body) + answer.missing))
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # the client may have left
                    self.wfile.write(answer.body)

            def log_message(self, *arguments):
                """Nothing on the terminal."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def url(self, path):
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def answer(self, path, body=b"", *, status=200, missing=0, delay=0.0, length=True):
        """Add an answer to those of a path; its address."""
        self._answers[path].append(Answer(body, status, missing, delay, length))
        return self.url(path)

    def close(self):
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(_fetch, "DELAY", 0.001)
    server = Server()
    yield server
    server.close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and no folder with data."""
    monkeypatch.delenv("CONTRAPCA_DATA", raising=False)
    monkeypatch.setenv("CONTRAPCA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
