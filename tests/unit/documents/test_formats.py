"""HTML, reStructuredText and plain text are read as Markdown is."""

from __future__ import annotations

import pytest

from tests.unit.documents.desk import claims, kinds, read, vouching

A, B = "https://oven.example/a", "https://oven.example/b"
PAGE = f"""<!DOCTYPE html>
<html><head><title>Kilns</title><style>p {{ color: red }}</style></head><body>
<h1>Kilns</h1>
<p>The kiln is <b>hot</b> &amp; old, says the <a href="{A}?x=1&amp;y=2">log</a>.
It burns oak.<br>It is red</p>
<ul><li>one is sold<li>one is <code>cold.</code> now</ul>
<table><tr><th>Wood</th><th>Heat</th></tr><tr><td>oak</td><td>1,200 <a href='{B}'>[1]</a></td></tr></table>
<pre>fire()</pre><!-- It is cold. --><script>heat()</script>
</body></html>
"""
RST = f"""Kilns
=====

The kiln is hot, says the `log <{A}>`_. It burns ``oak. Only.``
and `pine`_ too.

.. note:: It is old.
   :class: small

   It is red.

.. code-block:: python

   fire()

- one is sold
- one is cold [1]_

::

   heat()

.. It is blue.

.. _pine: {B}
.. [1] Book of 1920
"""


def test_a_page_of_html() -> None:
    assert claims(PAGE, "kilns.html") == [
        "The kiln is hot & old, says the log.",
        "It burns oak.",
        "It is red",
        "one is sold",
        "one is cold. now",
        "Wood: oak; Heat: 1,200",
    ]
    found = vouching(PAGE, "kilns.html")
    assert found["The kiln is hot & old, says the log."] == [f"{A}?x=1&y=2"]
    assert found["Wood: oak; Heat: 1,200"] == [B]
    assert read(PAGE, "kilns.html").claims[0].section == ("Kilns",)
    assert ("code", "<pre>fire()</pre>") in kinds(PAGE, "kilns.html")


def test_html_inside_markdown_is_read() -> None:
    text = f"<details><p>The kiln is hot.</p>\n<ul><li>It is <a href='{A}'>old</a></li></ul></details>\n"
    text += "\nIt is <i>red</i>.\n"
    assert vouching(text) == {"The kiln is hot.": [], "It is old": [A], "It is red.": []}


def test_restructured_text() -> None:
    assert vouching(RST, "kilns.rst") == {
        "The kiln is hot, says the log.": [A],
        "It burns ``oak. Only.`` and pine too.": [B],
        "It is old.": [],
        "It is red.": [],
        "one is sold": [],
        "one is cold": ["Book of 1920"],
    }
    assert read(RST, "kilns.rst").claims[0].section == ("Kilns",)


def test_plain_text() -> None:
    text = "Kilns\n-----\n\nThe kiln is hot.\nIt burns oak, which comes from the hill behind the\nhouse.\n"
    text += f"{A}\n\n* one is sold\n* one is cold\n"
    assert vouching(text, "kilns.txt") == {
        "The kiln is hot.": [A],
        "It burns oak, which comes from the hill behind the house.": [A],
        "one is sold": [],
        "one is cold": [],
    }


def test_markup_that_is_not_closed_hides_nothing() -> None:
    for text in (
        "<p>The kiln is hot.",
        "<svg><p>The kiln is hot.",
        "<a href='x'>The kiln is hot.",
        "<td>The kiln is hot.",
    ):
        assert claims(text, "a.html") == ["The kiln is hot."]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<!--> It is old. -->\n", "page.md"),
        ("It <!-- was --!>is old. <!-- -->\n", "page.md"),
        ("<![CDATA[>It is old.]]>\n", "page.md"),
        ("<p><!--> It is old. <!-- --></p>", "page.html"),
        ("<p><!-- a --!> It is old. <!-- --></p>", "page.html"),
        ("<head>\nIt is old.\n</head>\n", "page.md"),
        ("<html><head><p>It is old.</p></head></html>", "page.html"),
        ("<textarea>It is old.</textarea>", "page.html"),
        ("<div><noscript>It is old.</noscript></div>", "page.md"),
        ("<table><tr>It is old.</tr></table>", "page.html"),
        ("---\n# Kiln\n- It is old.\n---\n", "page.md"),
        ("---\nkiln: red\n- It is old.\n---\n", "page.md"),
        (".. note::\n\n   :Built: It is old.\n", "page.rst"),
        (".. note::\n:Built: It is old.\n", "page.rst"),
        ("..\n\n   It is old.\n", "page.rst"),
        (".. class:: big\n\n   It is old.\n", "page.rst"),
        (
            ".. raw:: html\n   :class: a\n\n   <p>It is <b>old</b>\n   </p>\n\n.. raw:: html\n\n   It is old.\n",
            "page.rst",
        ),
        (".. csv-table::\n\n   It is old.\n", "page.rst"),
        ("- Where::\n\n  It is old.\n", "page.rst"),
    ],
)
def test_what_a_reader_sees_is_read(text: str, name: str) -> None:
    assert any("is old." in said for said in claims(text, name)), kinds(text, name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<!-- It is old. -->\n", "page.md"),
        ("Red <!-- It is old. --> kiln\n", "page.md"),
        ("<script>It is old.</script>", "page.html"),
        ("---\nkilns:\n- It is old.\n# red\nset: {}\n---\n", "page.md"),
        (".. note::\n   :name: It is old.\n", "page.rst"),
        (".. It is old.\n\n   It is old.\n", "page.rst"),
    ],
)
def test_what_no_reader_sees_is_markup(text: str, name: str) -> None:
    assert not any("is old." in said for said in claims(text, name))


@pytest.mark.parametrize("box", ["!!! note", "??? tip", '=== "Tab"', "- !!! note"])
def test_what_is_indented_in_a_box_is_no_code(box: str) -> None:
    indent = "      " if box.startswith("-") else "    "
    text = f"{box}\n\n{indent}It\n{indent}is old ([log]({A})).\n\n{indent}It is hot.\n\nIt is red.\n"
    told = vouching(text)
    assert told["It is old."] == [A] and told["It is hot."] == [] and "It is red." in told
    assert ("code", "    fire()\n") in kinds("It is old!\n\n    fire()\n")


def test_each_field_of_restructured_text_is_read_by_itself() -> None:
    assert claims(":Built: It is old.\n:Fuel: It burns oak.\n", "page.rst") == ["It is old.", "It burns oak."]
