"""The outbound client against servers that misbehave: each request ends within its bounds, with its code."""

from __future__ import annotations

import asyncio
import gzip
import resource
import time
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile import Behaviour, Line, answer, failed, fetched, hostile, local
from vouchgate.ingest.net.fetched import Fetched, FetchFailed
from vouchgate.ingest.net.transport import Unpack

OK = b"HTTP/1.1 200 OK\r\n"


def get(behave: Behaviour, **options: Any) -> Fetched | FetchFailed:
    with hostile(behave) as server:
        return asyncio.run(local().fetch(f"http://127.0.0.1:{server.port}/", **options))


def says(*parts: bytes) -> Behaviour:
    """Sends this and ends the connection."""
    return lambda line, head: line.send(*parts)


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    return f"{len(data):x}".encode() + extension + b"\r\n" + data + b"\r\n"


def drip_header(line: Line, head: bytes) -> None:
    line.send(OK)
    line.drip(b"X-A: b\r\n" * 1000, 0.02)


def drip_body(line: Line, head: bytes) -> None:
    line.send(OK + b"Content-Length: 100000\r\n\r\n")
    line.drip(b"x" * 100_000, 0.02)


def drip_chunks(line: Line, head: bytes) -> None:
    line.send(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    line.drip(chunk(b"x") * 10_000, 0.02)


@pytest.mark.parametrize("behave", [drip_header, drip_body, drip_chunks, lambda line, head: line.hang()])
def test_a_slow_server_gets_its_time_and_no_more(behave: Behaviour) -> None:
    start = time.monotonic()
    outcome = failed(get(behave, seconds=0.5), "timeout")
    assert time.monotonic() - start >= 0.5  # and it ends, long before the server would
    assert outcome.detail == "timeout: no complete answer within 0.5 s"


def endless(piece: bytes, head: bytes) -> Behaviour:
    """Sends `head` and then `piece` until the client has had enough."""

    def behave(line: Line, _: bytes) -> None:
        line.send(head)
        while True:
            line.send(piece)

    return behave


ODD: dict[str, Behaviour] = {
    "nothing at all": lambda line, head: None,
    "half a status line": says(b"HTTP/1.1 20"),
    "a greeting of another protocol": says(b"220 mail.example ESMTP\r\n"),
    "SSH": says(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "TLS on a plain port": says(b"\x15\x03\x01\x00\x02\x02\x16"),
    "HTTP/0.9": says(b"<html>hello</html>"),
    "HTTP/2": says(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", OK),
    "a status that is no number": says(b"HTTP/1.1 abc OK\r\n\r\n"),
    "a header line without a name": says(OK + b": a\r\n\r\n"),
    "a header line that is none": says(OK + b"nonsense\r\n\r\n"),
    "a null in a header": says(OK + b"X-A: a\x00b\r\n\r\n"),
    "half a header": says(OK + b"X-A: b\r\n"),
    "10,000 header lines": says(OK + b"A: b\r\n" * 10_000 + b"\r\n"),
    "257 header lines": says(OK + b"A: b\r\n" * 256 + b"Content-Length: 0\r\n\r\n"),
    "one header line of 1 MB": says(OK + b"A: " + b"b" * 1_000_000 + b"\r\n\r\n"),
    "70,000 bytes of header": says(OK + (b"A: " + b"b" * 700 + b"\r\n") * 100 + b"\r\n"),
    "a header without end": endless(b"A: b\r\n" * 1000, OK),
    "interim answers without end": endless(b"HTTP/1.1 102 Processing\r\n\r\n" * 100, b""),
    "a change of protocol": says(b"HTTP/1.1 101 Switching\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n"),
    "two lengths": says(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
    "a length that is no number": says(OK + b"Content-Length: five\r\n\r\nhello"),
    "a negative length": says(OK + b"Content-Length: -5\r\n\r\nhello"),
    "a length of many digits": says(OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\nhello"),
    "less than it says": says(OK + b"Content-Length: 9\r\n\r\nhello"),
    "a chunk size that is no number": says(OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\nhello"),
    "a chunk longer than it says": says(OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n"),
    "a chunk of many digits": says(OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 50 + b"\r\nhello"),
    "chunks without the last": says(OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b"hello")),
    "another transfer encoding": says(OK + b"Transfer-Encoding: gzip\r\n\r\nhello"),
    "an encoding that was not offered": says(answer(b"hello", headers=["Content-Encoding: br"])),
    "two encodings": says(
        answer(gzip.compress(gzip.compress(b"a")), headers=["Content-Encoding: gzip, gzip"])
    ),
    "gzip that is none": says(answer(b"hello", headers=["Content-Encoding: gzip"])),
    "gzip cut short": says(answer(gzip.compress(b"hello" * 99)[:-9], headers=["Content-Encoding: gzip"])),
    "gzip with a wrong sum": says(
        answer(gzip.compress(b"a")[:-8] + bytes(8), headers=["Content-Encoding: gzip"])
    ),
    "deflate that is none": says(answer(b"\xff" * 50, headers=["Content-Encoding: deflate"])),
}


@pytest.mark.parametrize("behave", ODD.values(), ids=ODD)
def test_an_odd_answer_is_none(behave: Behaviour) -> None:
    failed(get(behave, seconds=15), "odd_answer")


def test_a_change_of_protocol_is_no_answer_to_head_either() -> None:
    switching = b"HTTP/1.1 101 Switching\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n"
    failed(get(says(switching), method="HEAD"), "odd_answer")


ODD_BODIES: dict[str, Behaviour] = {
    "a chunk for every byte": endless(chunk(b"x") * 1000, OK + b"Transfer-Encoding: chunked\r\n\r\n"),
    "chunk extensions and little else": endless(
        chunk(b"x", b";" + b"a" * 60_000), OK + b"Transfer-Encoding: chunked\r\n\r\n"
    ),
    "gzip that holds nothing": endless(
        b"\x00\x00\x00\xff\xff" * 1000, OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"")[:10]
    ),
}


@pytest.mark.parametrize("behave", ODD_BODIES.values(), ids=ODD_BODIES)
def test_a_body_that_is_mostly_wrapping_is_given_up(behave: Behaviour) -> None:
    failed(get(behave, seconds=60), "odd_answer")


def test_others_run_on_while_a_body_comes_in_crumbs() -> None:
    async def run(url: str) -> tuple[int, Fetched | FetchFailed]:
        task = asyncio.create_task(local().fetch(url, seconds=60))
        turns = 0
        while not task.done():
            await asyncio.sleep(0)
            turns += 1
        return turns, task.result()

    with hostile(ODD_BODIES["a chunk for every byte"]) as server:
        turns, outcome = asyncio.run(run(f"http://127.0.0.1:{server.port}/"))
    assert (
        turns > 300
    )  # a read brings over ten thousand crumbs, so without a breath in between it is a handful
    assert "too many pieces" in failed(outcome, "odd_answer").detail


GOOD: dict[str, tuple[Behaviour, bytes]] = {
    "HTTP/1.0 until the end": (says(b"HTTP/1.0 200 OK\r\n\r\nhello"), b"hello"),
    "HTTP/1.1 until the end": (says(OK + b"\r\nhello"), b"hello"),
    "more than it says": (says(OK + b"Content-Length: 5\r\n\r\nhello and more"), b"hello"),
    "no words after the status": (says(b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello"), b"hello"),
    "lines without CR": (says(b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"), b"hello"),
    "chunks": (
        says(
            OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b"hel", b";a=b") + chunk(b"lo") + b"0\r\n\r\n"
        ),
        b"hello",
    ),
    "byte by byte": (lambda line, head: line.drip(answer(b"hello"), 0.001), b"hello"),
    "an interim answer": (says(b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + answer(b"hello")), b"hello"),
    "gzip": (says(answer(gzip.compress(b"hello"), headers=["Content-Encoding: GZip"])), b"hello"),
    "x-gzip": (says(answer(gzip.compress(b"hello"), headers=["Content-Encoding: x-gzip"])), b"hello"),
    "gzip and more": (
        says(answer(gzip.compress(b"hello") + b"\0" * 9, headers=["Content-Encoding: gzip"])),
        b"hello",
    ),
    "deflate": (says(answer(zlib.compress(b"hello"), headers=["Content-Encoding: deflate"])), b"hello"),
    "deflate without its header": (
        says(answer(zlib.compress(b"hello", wbits=-15), headers=["Content-Encoding: deflate"])),
        b"hello",
    ),
    "gzip of nothing": (says(answer(gzip.compress(b""), headers=["Content-Encoding: gzip"])), b""),
    "nothing, said to be gzip": (says(answer(b"", headers=["Content-Encoding: gzip"])), b""),
    "256 header lines": (says(OK + b"A: b\r\n" * 255 + b"Content-Length: 5\r\n\r\nhello"), b"hello"),
}


@pytest.mark.parametrize(("behave", "body"), GOOD.values(), ids=GOOD)
def test_old_and_plain_servers_are_understood(behave: Behaviour, body: bytes) -> None:
    page = fetched(get(behave))
    assert (page.status, page.body, page.whole) == (200, body, True)


def test_header_lines_of_one_name_are_joined() -> None:
    page = fetched(get(says(OK + b"Link: a\r\nlink: b\xe9\r\nContent-Length: 0\r\n\r\n")))
    assert page.headers["link"] == "a, bé"


def test_a_range_of_a_packed_body_is_part_of_it() -> None:
    packed = gzip.compress(bytes(range(256)) * 100)[:200]
    page = fetched(
        get(says(answer(packed, status="206 Partial Content", headers=["Content-Encoding: gzip"])))
    )
    assert page.body
    assert not page.whole


@pytest.mark.parametrize("sent", [b"", OK, OK + b"Content-Length: 90\r\n\r\nhello"])
def test_a_reset_is_no_answer(sent: bytes) -> None:
    def behave(line: Line, head: bytes) -> None:
        line.send(sent)
        time.sleep(0.1)
        line.reset()

    outcome = failed(get(behave), "connection")
    assert outcome.detail.endswith("broke the connection off")


def test_nobody_listens() -> None:
    with hostile(says(b"")) as server:
        pass
    failed(asyncio.run(local().fetch(f"http://127.0.0.1:{server.port}/")), "connection")


def bomb(megabytes: int) -> bytes:
    """So many MB of zeros, packed."""
    pack = zlib.compressobj(9, wbits=31)
    return b"".join([*(pack.compress(bytes(1_000_000)) for _ in range(megabytes)), pack.flush()])


def most_memory() -> int:
    """Of this process so far, in KB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_a_bomb_is_cut_before_it_is_unpacked() -> None:
    packed = bomb(300)
    before = most_memory()
    page = fetched(get(says(answer(packed, headers=["Content-Encoding: gzip"])), max_bytes=100_000))
    assert (page.body, page.whole) == (bytes(100_000), False)
    assert most_memory() - before < 30_000


def test_only_one_layer_of_a_nested_bomb_is_taken_off() -> None:
    inner = bomb(100)
    packed = gzip.compress(inner)
    before = most_memory()
    page = fetched(get(says(answer(packed, headers=["Content-Encoding: gzip"]))))
    assert (page.body, page.whole) == (inner, True)
    assert most_memory() - before < 30_000


def test_a_long_body_is_left_where_it_is() -> None:
    with hostile(endless(b"x" * 60_000, OK + b"Content-Length: 99999999999\r\n\r\n")) as server:
        page = fetched(asyncio.run(local().fetch(f"http://127.0.0.1:{server.port}/")))
    assert (len(page.body), page.whole) == (2_000_000, False)


@given(
    st.binary(max_size=3000),
    st.integers(0, 4000),
    st.lists(st.integers(0, 600)),
    st.sampled_from(["", "gzip", "deflate"]),
)
def test_unpacking_gives_the_beginning_of_the_body_whatever_the_pieces(
    body: bytes, room: int, cuts: list[int], encoding: str
) -> None:
    packed = gzip.compress(body) if encoding == "gzip" else zlib.compress(body) if encoding else body
    unpack = Unpack(encoding, room)
    ends = sorted(cuts)
    pieces = [packed[start:end] for start, end in zip([0, *ends], [*ends, len(packed)], strict=True)]
    for piece in pieces:
        if not unpack.add(piece):
            break
    assert bytes(unpack.body) == body[:room]
    assert unpack.whole == (len(body) <= room)
    assert not unpack.cut_short


@given(st.binary(min_size=1, max_size=300), st.integers(0, 100), st.sampled_from(["gzip", "deflate"]))
def test_unpacking_anything_ends_or_says_that_it_is_nothing(data: bytes, room: int, encoding: str) -> None:
    unpack = Unpack(encoding, room)
    try:
        unpack.add(data)
    except zlib.error:
        return
    assert len(unpack.body) <= room


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_packed_body_that_ends_too_early_is_never_whole(cut: int) -> None:
    for encoding, packed in (("gzip", gzip.compress(b"some text")), ("deflate", zlib.compress(b"some text"))):
        unpack = Unpack(encoding, 1000)
        unpack.add(packed[:cut])
        assert unpack.cut_short == (cut < len(packed))
