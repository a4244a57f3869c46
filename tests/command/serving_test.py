#!/usr/bin/env python3
"""`volta serve` among clients of every kind: good, many, wrong, slow, greedy and gone.

    tests/command/serving_test.py PROGRAM DATA_FOLDER [unittest arguments]
"""

import collections
import concurrent.futures
import gzip
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import unittest
import zlib

from common import SANITIZED, Served, train_table, train_text, volta

JUNK = int(os.environ.get("JUNK", "400"))  # mutated requests; a release sees 10,000
GOOD = json.dumps({"inputs": [[2, -1]]})


def raw(port, data=b"", timeout=60):
    """A connection that has sent the bytes."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=timeout)
    connection.sendall(data)
    return connection


def rest_of(connection):
    """What comes until the server closes."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def post(body, *headers, path="/v1/predict"):
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", *headers, "", ""]).encode() + body


def emptied(server):
    """Whether the connections end in the next seconds, but for the one that asks."""
    for _ in range(300):
        if server.metric("volta_connections") == 1:
            return True
        time.sleep(0.1)
    return False


def array(kind, shape, data):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117)
    return b"\x93NUMPY\x01\x00v\x00" + header + b"\n" + data


def npy(*values):
    return array("<f4", (1, len(values)), struct.pack(f"<{len(values)}f", *values))


def png(width, height, kind, rows):
    """8 bits per channel; kind 0 is gray, 2 RGB, 4 gray and alpha, 6 RGB and alpha."""
    chunk = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b""))


class Table(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.model = train_table(pathlib.Path(held.name))["file"]


class Answers(Table):
    def test_predictions_as_json_and_as_arrays(self):
        with Served(self.model) as server:
            status, _, body = server.ask("POST", "/v1/predict", json.dumps({"inputs": [[0, 0], [2, -1], [4, -2]]}))
            self.assertEqual((status, [p["label"] for p in json.loads(body)["predictions"]]), (200, ["a", "b", "c"]))
            status, headers, body = server.ask("POST", "/v1/predict", npy(4, -2), {"Content-Type": "application/x-npy", "Accept": "application/x-npy"})
            self.assertEqual((status, headers["Content-Type"], body[:6]), (200, "application/x-npy", b"\x93NUMPY"))
            self.assertIn('volta_requests_total{code="200"} 2', server.ask("GET", "/metrics")[2].decode())

    def test_inputs_are_found_among_other_fields(self):
        with Served(self.model) as server:
            for body in ['{"a": [[["x"]], {"inputs": "y"}, null], "inputs": [[2, -1]], "b": 1.5}', '{"inputs": [9, 9], "inputs": [[2, -1]]}',
                         '{"inputs": [2, -1]}', '{"inputs": [[2e0, -1.0]]}']:
                status, _, answer = server.ask("POST", "/v1/predict", body)
                self.assertEqual(status, 200, body)
                self.assertEqual(json.loads(answer)["predictions"][0]["label"], "b", body)
            for body in ["7", '{"inputs": [1, [2, 3]]}', '{"inputs": [[1, 2], 3]}', '{"inputs": [[], [1, 2]]}', '{"inputs": [[[[[[[1]]]]]]]}',
                         '{"inputs": {"a": 1}}', '{"inputs": 1}', '{"inputs": []}', '{"inputs": null}', '{"inputs": [[1, 2]]',
                         '{"inputs": [[1, 2]]} 3', '{"other": {"inputs": [[1, 2]]}}']:
                status, _, answer = server.ask("POST", "/v1/predict", body)
                self.assertEqual((status, "message" in json.loads(answer)["error"]), (400, True), body)

    @unittest.skipIf(SANITIZED, "a sanitizer's own memory is many times the body's")
    @unittest.skipUnless(pathlib.Path("/proc/self/status").exists(), "needs Linux")
    def test_json_takes_little_more_memory_than_its_bytes(self):
        with Served(self.model, "--max-body", 32 << 20) as server:
            server.ask("POST", "/v1/predict", GOOD)
            peak_memory = lambda: 1024 * int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{server.process.pid}/status").read_text())[1])
            before = peak_memory()
            body = '{"inputs": [' + ",".join(["[1,2]"] * 2_000_000) + "]}"  # refused for their number, once they are read
            self.assertEqual(server.ask("POST", "/v1/predict", body)[0], 413)
            self.assertLess(peak_memory() - before, 10 * len(body))

    def test_a_neighbour_changes_no_answer(self):
        asked = [(array("|u1", (1, 2), b"\xf0\x07"), "application/x-npy"), (GOOD, "application/json"), (npy(0.5, 100), "application/x-npy"),
                 (array("<f8", (1, 2), struct.pack("<2d", 4, -2)), "application/x-npy"), (array("<i8", (1, 2), struct.pack("<2q", 240, 7)), "application/x-npy")]
        with Served(self.model) as server:
            ask = lambda of, body, kind: json.loads(of.ask("POST", "/v1/predict", body, {"Content-Type": kind})[2])["predictions"][0]["output"]
            alone = [ask(server, *one) for one in asked]
            with Served(self.model, "--max-batch", len(asked), "--max-wait", 1000000, "--workers", 1) as crowded:
                with concurrent.futures.ThreadPoolExecutor(len(asked)) as pool:
                    together = list(pool.map(lambda one: ask(crowded, *one), asked))
        for one, other in zip(alone, together):
            for a, b in zip(one, other):
                self.assertAlmostEqual(a, b, 4)
        for a, b in zip(alone[0], alone[4]):  # bytes of a table are numbers
            self.assertAlmostEqual(a, b, 4)

    def test_nonsense_is_400_and_says_why(self):
        with Served(self.model, "--max-body", 4096, "--max-batch", 4) as server:
            for bad, wanted in [("{", 400), ("[]", 400), ("{}", 400), ('{"inputs": "x"}', 400), ('{"inputs": [[1]]}', 400),
                                ('{"inputs": [[1, 2], [3]]}', 400), ('{"inputs": ' + "[" * 500, 400), ('{"inputs": [[1e39, 2]]}', 400),
                                ('{"inputs": [[1, null]]}', 400), ('{"inputs": [[1,2]]}' + " " * 5000, 413), ("", 400),
                                ('{"inputs": [[1,2],[1,2],[1,2],[1,2],[1,2]]}', 413), ('{"inputs": [[1,2]]}\0', 400),
                                ('{"inputs": [[3e38,3e38]]}', 400)]:
                status, _, body = server.ask("POST", "/v1/predict", bad)
                self.assertEqual(status, wanted, bad[:40])
                self.assertIn("message", json.loads(body)["error"])
            status, _, body = server.ask("POST", "/v1/predict", npy(float("nan"), 1), {"Content-Type": "application/x-npy"})
            self.assertEqual((status, "finite" in json.loads(body)["error"]["message"]), (400, True))
            large = array("<f8", (2, 2), struct.pack("<4d", 0, 1, 1e300, 1))
            status, _, body = server.ask("POST", "/v1/predict", large, {"Content-Type": "application/x-npy"})
            self.assertEqual((status, "item 1 " in json.loads(body)["error"]["message"]), (400, True))

    def test_each_path_takes_its_methods(self):
        gets, posts = ["/", "/health", "/metrics", "/v1/models", "/v1/models/model"], ["/v1/predict", "/v1/completions"]
        with Served(self.model) as server:
            refused = 0
            for path in gets:
                status, headers, body = server.ask("GET", path)
                self.assertEqual(status, 200, path)
                status, there, nothing = server.ask("HEAD", path)
                self.assertEqual((status, nothing), (200, b""), path)
                if path != "/metrics":
                    self.assertEqual(there["Content-Length"], str(len(body)), path)
            for path, methods, allow in [*((p, ["POST", "PUT", "DELETE", "PATCH"], "GET, HEAD, OPTIONS") for p in gets),
                                         *((p, ["GET", "HEAD", "PUT", "DELETE", "PATCH"], "POST, OPTIONS") for p in posts)]:
                for method in methods:
                    status, headers, body = server.ask(method, path, "{}" if method != "GET" else None)
                    self.assertEqual((status, headers["Allow"]), (405, allow), (method, path))
                    refused += 1
                    if method != "HEAD":
                        self.assertIn(method, json.loads(body)["error"]["message"])
                status, headers, _ = server.ask("OPTIONS", path)
                self.assertEqual((status, headers["Allow"]), (204, allow), path)
            for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"]:
                self.assertEqual(server.ask(method, "/nothing")[0], 404, method)
            self.assertEqual(server.ask("GET", "/v1/models/other")[0], 404)
            self.assertEqual(server.ask("POST", "/v1/completions", "{}")[0], 404)
            self.assertIn(b"<canvas", server.ask("GET", "/")[2])
            self.assertEqual(server.metric('volta_requests_total{code="405"}'), refused)
            self.assertEqual(server.metric('volta_requests_total{code="404"}'), 8)

    def test_bodies_in_chunks_and_requests_in_a_row(self):
        chunked = b"%x\r\n%s\r\n4;x=y\r\n%s\r\n0\r\nTrailer: t\r\n\r\n" % (len(GOOD) - 4, GOOD[:-4].encode(), GOOD[-4:].encode())
        whole = post(GOOD.encode(), f"Content-Length: {len(GOOD)}")
        with Served(self.model) as server:
            with raw(server.port, post(chunked, "Transfer-Encoding: chunked", "Connection: close")) as connection:
                self.assertIn(b'"label":"b"', rest_of(connection))
            with raw(server.port, whole * 3 + post(GOOD.encode(), f"Content-Length: {len(GOOD)}", "Connection: close")) as pipelined:
                self.assertEqual(rest_of(pipelined).count(b'"label":"b"'), 4)
            with raw(server.port) as slowly:  # byte by byte, but in time
                for i in range(len(whole)):
                    slowly.sendall(whole[i:i + 1])
                self.assertIn(b"200 OK", slowly.recv(65536))
            with raw(server.port, post(b"", f"Content-Length: {len(GOOD)}", "Expect: 100-continue", "Connection: close")) as polite:
                self.assertTrue(polite.recv(25).startswith(b"HTTP/1.1 100 Continue"))
                polite.sendall(GOOD.encode())
                self.assertIn(b'"label":"b"', rest_of(polite))

    def test_a_folder_has_a_name_too(self):
        folder = pathlib.Path(self.model).parent
        for given in [f"{folder}", f"{folder}/", f"{folder}//"]:
            with Served(given) as server:
                self.assertEqual(json.loads(server.ask("GET", "/v1/models")[2])["data"][0]["id"], folder.name)
                self.assertEqual(server.ask("GET", f"/v1/models/{folder.name}")[0], 200)

    def test_a_header_whose_name_is_not_one_word_is_refused(self):
        with Served(self.model) as server:
            for header in ["Content-Length : 12", "\tContent-Length: 12", "Content Length: 12", ": 12"]:
                with raw(server.port, post(b"GET / HTTP/1.1\r\n\r\n", header, "Connection: close")) as connection:
                    answer = rest_of(connection)
                self.assertEqual((answer[:12], answer.count(b"HTTP/1.1 "), b"name of a header" in answer), (b"HTTP/1.1 400", 1, True), header)

    def test_compressed_bodies_are_refused(self):
        bomb = gzip.compress(bytes(64 << 20))
        with Served(self.model, "--max-body", 1 << 20) as server:
            for encoding, body, wanted in [("gzip", bomb, 415), ("GZIP", gzip.compress(GOOD.encode()), 415), ("br", b"x", 415), ("identity", GOOD.encode(), 200)]:
                status, _, answer = server.ask("POST", "/v1/predict", body, {"Content-Encoding": encoding})
                self.assertEqual(status, wanted, encoding)
                self.assertEqual("Content-Encoding" in answer.decode(), wanted == 415)

    def test_types_of_bodies(self):
        with Served(self.model) as server:
            status, headers, _ = server.ask("POST", "/v1/predict", npy(4, -2), {"Content-Type": "Application/X-NPY", "Accept": "APPLICATION/x-npy"})
            self.assertEqual((status, headers["Content-Type"]), (200, "application/x-npy"))
            form = {"Content-Type": "application/x-www-form-urlencoded"}  # as curl -d says
            self.assertEqual(server.ask("POST", "/v1/predict", GOOD, form)[0], 200)
            self.assertEqual(server.ask("POST", "/v1/predict", GOOD + " " * 100000, form)[0], 200)
            chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD) + 9000, GOOD.encode() + b" " * 9000)
            with raw(server.port, post(chunks, "Content-Type: application/x-www-form-urlencoded", "Transfer-Encoding: chunked", "Connection: close")) as connection:
                self.assertIn(b'"label":"b"', rest_of(connection))

    def test_answers_are_whole_whatever_range_is_asked_for(self):
        with Served(self.model) as server:
            for method, path, body in [("POST", "/v1/predict", GOOD), ("GET", "/health", None), ("GET", "/", None)]:
                whole = server.ask(method, path, body)[2]
                for wanted in ["bytes=0-3", "bytes=99999999-", "bytes=0-0,2-2", "lines=1"]:
                    status, _, part = server.ask(method, path, body, {"Range": wanted})
                    self.assertEqual((status, part), (200, whole), (path, wanted))

    def test_an_answer_that_is_not_finite_is_400_in_every_form(self):
        with Served(self.model) as server:
            for accept in ["application/json", "application/x-npy"]:
                status, _, body = server.ask("POST", "/v1/predict", npy(3e38, 3e38), {"Content-Type": "application/x-npy", "Accept": accept})
                self.assertEqual((status, "not finite" in json.loads(body)["error"]["message"]), (400, True))

    def test_the_port_in_use_is_named_with_a_cure(self):
        with Served(self.model) as server:
            said = volta("serve", self.model, "--port", server.port, status=1).stderr
            self.assertIn(f"127.0.0.1:{server.port}", said)
            self.assertIn("port is in use", said)
            self.assertIn("--port", said)
        self.assertIn("--host", volta("serve", self.model, "--host", "no.such.host.invalid", "--port", 0, status=1).stderr)
        self.assertIn("--host", volta("serve", self.model, "--host", "192.0.2.1", "--port", 0, status=1).stderr)

    def test_a_shutdown_answers_what_has_arrived(self):
        with Served(self.model, "--max-batch", 8, "--max-wait", 1000000) as server:
            with concurrent.futures.ThreadPoolExecutor(3) as pool:
                waiting = [pool.submit(server.ask, "POST", "/v1/predict", GOOD) for _ in range(3)]
                while server.metric("volta_queue_length") < 3:
                    time.sleep(0.01)
                idle = raw(server.port)
                server.process.send_signal(signal.SIGTERM)
                self.assertEqual([w.result()[0] for w in waiting], [200] * 3)
            self.assertEqual(server.process.wait(60), 0)
            self.assertEqual(rest_of(idle), b"")
            idle.close()
        for _ in range(5):  # a signal at once is not lost
            Served(self.model).stop()


class Crowds(Table):
    def test_many_clients_and_junk_get_answers(self):
        def client(server, seed):
            draw = random.Random(seed)
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            seen = set()
            for i in range(60):
                body = bytearray(GOOD.encode())
                if i % 2:
                    for _ in range(draw.randint(1, 4)):
                        body[draw.randrange(len(body))] = draw.randrange(256)
                connection.request("POST", "/v1/predict", bytes(body))
                reply = connection.getresponse()
                text = reply.read()
                self.assertTrue(reply.status == 200 or 400 <= reply.status < 500, (reply.status, body))
                if i % 2 == 0:
                    self.assertEqual(json.loads(text)["predictions"][0]["label"], "b")
                seen.add(reply.status)
            connection.close()
            return seen

        with Served(self.model) as server, concurrent.futures.ThreadPoolExecutor(8) as pool:
            seen = set().union(*pool.map(lambda seed: client(server, seed), range(8)))
            self.assertTrue({200, 400} <= seen, seen)

    def test_broken_http_is_refused_and_hurts_nobody(self):
        draw = random.Random(5)
        good = post(GOOD.encode(), "Content-Type: application/json", f"Content-Length: {len(GOOD)}", "Connection: close")
        with Served(self.model, "--timeout", 0.5) as server:
            for head, wanted in [(post(b"", "Content-Length: x"), 400), (post(b"", "Content-Length: -1"), 400), (post(b"", "no colon"), 400),
                                 (post(b"", "Content-Length: 1", "Content-Length: 2"), 400),
                                 (post(b"", "Content-Length: 1", "Transfer-Encoding: chunked"), 400),
                                 (post(b"", "Transfer-Encoding: gzip"), 400), (post(b"zz\r\n", "Transfer-Encoding: chunked"), 400),
                                 (post(b"fffffffffffffffff\r\n", "Transfer-Encoding: chunked"), 400),
                                 (post(b"2\r\nabcd", "Transfer-Encoding: chunked"), 400),
                                 (post(b"", "Content-Length: 99999999999"), 413), (post(b"fffffff\r\n", "Transfer-Encoding: chunked"), 413),
                                 (post(b"", "Expect: magic"), 417), (post(b"12345", "X: y\nContent-Length: 5"), 400), (post(b"", "X: a\0b"), 400), (b"GET / HTTP/1.1\r\nX: " + b"y" * 20000, 431),
                                 (b"GET /" + b"y" * 10000 + b" HTTP/1.1\r\n\r\n", 414), (b"FLY / HTTP/1.1\r\n\r\n", 400),
                                 (b"\r\n\r\n", 400), (b"GET  / HTTP/1.1\r\n\r\n", 400), (b"GET / HTTP/9.9\r\n\r\n", 400)]:
                with raw(server.port, head) as connection:
                    answer = rest_of(connection)
                self.assertTrue(answer.startswith(b"HTTP/1.1 %d " % wanted), (head[:60], answer[:200]))
                self.assertIn(b'"message"', answer)

            def client(count):
                seen = collections.Counter()
                for _ in range(count):
                    junk = bytearray(good)
                    for _ in range(draw.randint(1, 12)):
                        at = draw.randrange(len(junk))
                        junk[at:at + draw.randint(0, 3)] = bytes(draw.randrange(256) for _ in range(draw.randint(0, 3)))
                    with raw(server.port, bytes(junk)) as connection:
                        connection.shutdown(socket.SHUT_WR)
                        answer = rest_of(connection)
                    status = int(answer[9:12])
                    self.assertTrue(status in (200, 204) or 400 <= status < 500, (bytes(junk), answer))
                    seen[status] += 1
                return seen

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                seen = sum(pool.map(client, [JUNK // 8] * 8), collections.Counter())
            self.assertEqual(sum(seen.values()), JUNK)
            self.assertTrue({200, 400, 404} <= set(seen), seen)
            print(f"{JUNK} mutated requests: {dict(sorted(seen.items()))}", file=sys.stderr)
            self.assertEqual(server.ask("POST", "/v1/predict", GOOD)[0], 200)

    def test_slow_clients_are_cut_and_block_nobody(self):
        with Served(self.model, "--timeout", 3, "--max-body", 1 << 20) as server:
            began = time.monotonic()
            heads = [raw(server.port, b"POST /v1/predict HTTP/1.1\r\nX-Slow: ") for _ in range(150)]
            bodies = [raw(server.port, post(b"{", "Content-Length: 5000")) for _ in range(75)]
            bodies += [raw(server.port, post(b"1\r\n{\r\n", "Transfer-Encoding: chunked")) for _ in range(75)]
            silent = [raw(server.port) for _ in range(100)]
            done = threading.Event()

            def drip():
                left = [*heads, *bodies]
                while not done.wait(0.1):
                    for connection in list(left):
                        try:
                            connection.send(b"1")
                        except OSError:
                            left.remove(connection)

            dripping = threading.Thread(target=drip)
            dripping.start()
            try:
                slowest, asked = 0, 0
                while time.monotonic() - began < 2.5:
                    start = time.monotonic()
                    self.assertEqual(server.ask("POST", "/v1/predict", GOOD)[0], 200)
                    slowest, asked = max(slowest, time.monotonic() - start), asked + 1
                self.assertGreater(asked, 5)
                self.assertLess(slowest, 1)
                for connection in [*heads, *bodies]:
                    answer = rest_of(connection)
                    self.assertTrue(answer.startswith((b"HTTP/1.1 408 ", b"HTTP/1.1 400 ")) or not answer, answer)
                self.assertEqual({rest_of(connection) for connection in silent}, {b""})
                self.assertLess(time.monotonic() - began, 15)
            finally:
                done.set()
                dripping.join()
                for connection in [*heads, *bodies, *silent]:
                    connection.close()
            self.assertTrue(emptied(server))
            self.assertGreater(server.metric('volta_requests_total{code="408"}'), 100)

    def silent_readers(self, server, count):
        """Clients that do not read their answers, some 13 MB each."""
        held = []
        for _ in range(count):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n" * 2000)
            held.append(connection)
        return held

    def test_clients_that_do_not_read_block_nobody(self):
        with Served(self.model, "--timeout", 3600) as server:  # so that none of them is cut to make room
            length = len(server.ask("GET", "/")[2])
            held = self.silent_readers(server, 80)  # more than there are threads
            self.assertEqual(server.ask("POST", "/v1/predict", GOOD)[0], 200)
            reader = held.pop()
            reader.settimeout(60)
            reader.sendall(b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n")
            answers = rest_of(reader)  # from here on it reads, and nothing is missing
            reader.close()
            self.assertEqual((answers.count(b"HTTP/1.1 200 OK"), answers.count(b"</html>")), (2001, 2000))
            self.assertGreater(len(answers), 2000 * length)
            for connection in held:
                connection.close()

    def test_clients_that_do_not_read_are_cut(self):
        with Served(self.model, "--timeout", 3) as server:
            held = self.silent_readers(server, 10)
            self.assertTrue(emptied(server))
            for connection in held:
                connection.close()

    def test_a_large_body_is_413_before_it_has_come(self):
        with Served(self.model, "--max-body", 1000) as server:
            for headers in [["Content-Length: 100000000"], ["Transfer-Encoding: chunked"]]:
                with raw(server.port, post(b"5f5e100\r\n" if "chunked" in headers[0] else b"", *headers)) as connection:
                    answer = connection.recv(65536)
                    self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)
                    self.assertRegex(answer, rb"limit (is|of) 1000")
                    began = time.monotonic()
                    with self.assertRaises(ConnectionError):  # the rest is thrown away for a while, then the connection ends
                        while time.monotonic() - began < 20:
                            connection.sendall(b"x" * 65536)
                            time.sleep(0.01)
            self.assertEqual(server.ask("POST", "/v1/predict", GOOD)[0], 200)

    def test_a_full_queue_is_503_with_retry_after(self):
        with Served(self.model, "--max-batch", 8, "--max-wait", 1000000, "--max-queue", 2, "--workers", 1) as server:
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                waiting = [pool.submit(server.ask, "POST", "/v1/predict", GOOD) for _ in range(2)]
                while server.metric("volta_queue_length") < 2:
                    time.sleep(0.01)
                status, headers, body = server.ask("POST", "/v1/predict", GOOD)
                self.assertEqual((status, headers["Retry-After"]), (503, "1"))
                self.assertIn("queue is full", json.loads(body)["error"]["message"])
                self.assertEqual([w.result()[0] for w in waiting], [200, 200])
            status, headers, body = server.ask("POST", "/v1/predict", json.dumps({"inputs": [[2, -1]] * 3}))
            self.assertEqual((status, headers["Retry-After"]), (413, None))  # which would never be right
            self.assertIn("at most 2 items", json.loads(body)["error"]["message"])

    def test_too_many_connections_are_told(self):
        with Served(self.model, "--connections", 10) as server:
            held = [raw(server.port) for _ in range(9)]
            while server.metric("volta_connections") < 10:  # with its own
                time.sleep(0.01)
            held.append(raw(server.port))
            time.sleep(0.3)
            status, headers, body = server.ask("GET", "/health")
            self.assertEqual((status, headers["Retry-After"]), (503, "1"))
            self.assertIn("too many connections", json.loads(body)["error"]["message"])
            for connection in held:
                connection.close()
            time.sleep(0.3)
            self.assertEqual(server.ask("GET", "/health")[0], 200)

    def test_clients_that_leave_do_no_harm(self):
        with Served(self.model) as server:
            for i in range(200):
                with raw(server.port, post(GOOD.encode(), f"Content-Length: {len(GOOD)}")) as connection:
                    if i % 2:  # a reset instead of a farewell
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.assertEqual(server.ask("POST", "/v1/predict", GOOD)[0], 200)
            self.assertTrue(emptied(server))


class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not json.loads(volta("doctor", "--json").stdout)["images"]["state"].startswith("PNG"):
            raise unittest.SkipTest("this build reads no PNG")
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.model = json.loads(volta("train", "mlp", "--data", "digits", "--epochs", 1, "--out", pathlib.Path(held.name) / "run", "--json").stdout)["file"]

    def test_an_image_is_its_pixels(self):
        draw = random.Random(4)
        with Served(self.model) as server:
            recipe = json.loads(server.ask("GET", "/v1/models")[2])["data"][0]["recipe"]["sizes"]
            h, w = recipe["height"], recipe["width"]
            gray = [bytes(draw.randrange(256) for _ in range(w)) for _ in range(h)]
            ask = lambda body, kind: json.loads(server.ask("POST", "/v1/predict", body, {"Content-Type": kind})[2])["predictions"][0]["output"]
            wanted = ask(array("|u1", (1, h, w), b"".join(gray)), "application/x-npy")
            twice = [b"".join(bytes([v, v]) for v in row) for row in gray for _ in range(2)]
            for body in [png(w, h, 0, gray), png(w, h, 2, [b"".join(bytes([v] * 3) for v in row) for row in gray]),
                         png(w, h, 4, [b"".join(bytes([v, 9]) for v in row) for row in gray]),
                         png(w, h, 6, [b"".join(bytes([v, v, v, 9]) for v in row) for row in gray])]:
                for a, b in zip(ask(body, "image/png"), wanted):
                    self.assertAlmostEqual(a, b, 3)
            self.assertEqual(len(ask(png(2 * w, 2 * h, 0, twice), "image/png")), len(wanted))

    def test_a_small_file_of_a_huge_image_is_refused(self):
        with Served(self.model) as server:
            status, _, body = server.ask("POST", "/v1/predict", png(8000, 8000, 0, [bytes(8000)] * 8000), {"Content-Type": "image/png"})
            self.assertEqual(status, 400)
            self.assertIn("8000 x 8000, more than max_pixels", json.loads(body)["error"]["message"])


class Texts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.model = train_text(pathlib.Path(held.name))

    def test_completions_whole_and_streamed(self):
        request = {"prompt": "abc", "max_tokens": 30, "temperature": 0, "seed": 1}
        with Served(self.model) as server:
            ask = lambda **more: server.ask("POST", "/v1/completions", json.dumps({**request, **more}))
            status, _, body = ask()
            whole = json.loads(body)["choices"][0]["text"]
            self.assertEqual((status, len(whole)), (200, 30))
            status, headers, body = ask(stream=True)
            events = [line[6:] for line in body.decode().split("\n\n") if line.startswith("data: ")]
            self.assertEqual((headers["Content-Type"], events[-1]), ("text/event-stream", "[DONE]"))
            self.assertEqual("".join(json.loads(e)["choices"][0]["text"] for e in events[:-1]), whole)
            stopped = json.loads(ask(stop=whole[2:4])[2])
            choice = stopped["choices"][0]
            self.assertEqual((choice["text"], choice["finish_reason"]), (whole[:whole.index(whole[2:4])], "stop"))
            self.assertEqual(stopped["usage"]["completion_tokens"], whole.index(whole[2:4]) + 2)
            self.assertEqual(len(json.loads(ask(temperature=1e-300)[2])["choices"][0]["text"]), 30)
            for wrong in [{"prompt": "Z"}, {"stream": 1}, {"max_tokens": 1.5}, {"max_tokens": 1e300}, {"seed": "x"}, {"top_p": 0}]:
                self.assertEqual(ask(**wrong)[0], 400, wrong)
            self.assertEqual(server.ask("POST", "/v1/predict", '{"inputs": [1]}')[0], 404)

    def test_a_stream_ends_when_its_client_has_gone(self):
        body = json.dumps({"prompt": "abc", "max_tokens": 4096, "stream": True}).encode()
        with Served(self.model) as server:
            streams = [raw(server.port, post(body, f"Content-Length: {len(body)}", path="/v1/completions")) for _ in range(4)]
            for stream in streams:
                self.assertIn(b"200 OK", stream.recv(1000))
                stream.close()
            self.assertTrue(emptied(server))
            self.assertLess(server.metric("volta_tokens_total"), 4 * 4096)

    def test_a_completion_ends_when_its_client_has_gone(self):
        body = json.dumps({"prompt": "abc", "max_tokens": 4096, "n": 16}).encode()
        with Served(self.model) as server:
            with raw(server.port, post(body, f"Content-Length: {len(body)}", path="/v1/completions")):
                time.sleep(0.3)
            for _ in range(300):
                if 'volta_requests_total{code="499"} 1' in server.ask("GET", "/metrics")[2].decode():
                    break
                time.sleep(0.1)
            self.assertEqual(server.metric('volta_requests_total{code="499"}'), 1)
            self.assertTrue(0 < server.metric("volta_tokens_total") < 16 * 4096)

    def test_a_ctrl_c_that_is_ignored_stays_so(self):
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            server = Served(self.model)
        finally:
            signal.signal(signal.SIGINT, before)
        with server:
            server.process.send_signal(signal.SIGINT)
            time.sleep(0.5)
            self.assertEqual(server.ask("GET", "/health")[0], 200)


if __name__ == "__main__":
    unittest.main()
