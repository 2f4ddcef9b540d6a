"""Words as a reader sees them, whatever marks a page, a file or a keyboard leaves within them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.running.hangs import given_up_after
from vouchgate.ingest.language.written import written_out


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("We don&#39;t or don&rsquo;t or don&#x2019;t", "We don't or don't or don't"),
        ("We donʼt, don´t, don`t, don＇t", "We don't, don't, don't, don't"),
        ("We do&nbsp;not and do not&shy; use it", "We do not and do not use it"),
        ("We do n\u00adot or n\u200bot or n<wbr>ot or n<b>o</b>t", "We do not or not or not or not"),
        ('We do [not](why.md "Why") use [it](https://example.org/it).', "We do not use it ."),
        # These are no such words.
        ("`x` or `n`t`, a[i](x), ![not](x.png)", "`x` or `n't`, a[i](x), ![not](x.png)"),
        ("10<sup>6</sup>, a < b, R&D; x&y", "10<sup>6</sup>, a < b, R&D; x&y"),
        ("the drivers' seats, 5' by 3'", "the drivers' seats, 5' by 3'"),
    ],
)
def test_words_are_written_out(text: str, read: str) -> None:
    assert written_out(text).split() == read.split()


@given(st.text(st.sampled_from("an ot[](`´<b>/&nbsp;#39\u200bé_\n"), max_size=60))
def test_offsets_hold(text: str) -> None:
    assert len(written_out(text)) == len(text)


@pytest.mark.parametrize("bit", ["y", "y´", "y<b ", "[a](", "y&", "don&#39;t ", "\u200b"])
def test_long_runs_take_no_time(bit: str) -> None:
    with given_up_after(5):
        written_out(bit * 100_000)
