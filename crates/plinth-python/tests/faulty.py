"""A proxy in front of a server: what goes wrong between a store and its readers."""

import http.client
import socket
import struct
import threading
import time
from socketserver import BaseRequestHandler, ThreadingTCPServer
from urllib.parse import urlsplit

BUSY = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


class Proxy:
    """Hands requests on, and answers back, with the faults that ``decide(method, path)`` names:

    ``("late", s)``, ``("busy",)``: 503, ``("reset",)``: before the request is handed on, ``("lost",)``: after it was, ``("cut", n)``: the
    connection ends after ``n`` bytes of the body, ``("slow", n, s)``: the body comes in pieces of ``n`` bytes, ``s`` seconds apart,
    ``("first", f)``: ``f`` is called before the request is handed on. None: all is well.
    """

    def __init__(self, upstream):
        self.upstream = urlsplit(upstream).netloc
        self.decide = lambda method, path: None
        self.requests = []
        proxy = self

        class Handler(BaseRequestHandler):
            def handle(self):
                proxy.serve(self.request)

        class Server(ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 128

            def handle_error(self, request, client_address):
                """Clients that give up are no errors."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.endpoint = "http://127.0.0.1:%d" % self.server.server_address[1]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def serve(self, client):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = client.makefile("rb")
        while (line := reader.readline()).strip():
            method, path, _ = line.decode("latin-1").split(" ", 2)
            headers = http.client.parse_headers(reader)
            if headers.get("Expect"):
                client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = reader.read(int(headers.get("Content-Length") or 0))
            self.requests.append((method, path))
            fault = self.decide(method, path)
            if not self.answer(client, method, path, headers, body, fault or ("none",)):
                return

    def answer(self, client, method, path, headers, body, fault):
        """Answers a request; whether the connection goes on."""
        kind = fault[0]
        if kind == "late":
            time.sleep(fault[1])
        elif kind == "busy":
            head = f"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: {len(BUSY)}\r\n\r\n"
            client.sendall(head.encode() + (b"" if method == "HEAD" else BUSY))
            return True
        elif kind == "reset":
            return self.reset(client)
        elif kind == "first":
            fault[1]()
        upstream = http.client.HTTPConnection(self.upstream, timeout=60)
        try:
            upstream.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                if name.lower() not in ("connection", "expect"):
                    upstream.putheader(name, value)
            upstream.endheaders(body or None)
            response = upstream.getresponse()
            data = response.read()
        finally:
            upstream.close()
        if kind == "lost":
            return self.reset(client)
        left_out = ("connection", "transfer-encoding", "content-length")
        lines = [f"{name}: {value}" for name, value in response.getheaders() if name.lower() not in left_out]
        # Of HEAD the length is that of a body that does not come.
        length = response.getheader("Content-Length") if method == "HEAD" else len(data)
        lines.append(f"Content-Length: {length or 0}")
        head = f"HTTP/1.1 {response.status} {response.reason}\r\n" + "\r\n".join(lines) + "\r\n\r\n"
        client.sendall(head.encode("latin-1"))
        if kind == "cut" and len(data) > fault[1]:
            client.sendall(data[: fault[1]])
            return self.reset(client)
        if kind == "slow":
            for at in range(0, len(data), fault[1]):
                client.sendall(data[at : at + fault[1]])
                time.sleep(fault[2])
        else:
            client.sendall(data)
        return True

    @staticmethod
    def reset(client):
        # Closed with a reset rather than an end.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        return False
