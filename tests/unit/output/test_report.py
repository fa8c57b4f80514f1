"""Reports: whole, from nowhere else, and escaped whatever an application stores."""

import re
from html.parser import HTMLParser
from xml.dom import minidom

from kops.output.report import BAD, Report, Section, Table, report_html
from kops.output.report_chart import Chart

EVIL = '<script>alert("1")</script>&\x00\u202e'
CHART = Chart(EVIL, 0, 59, ["missing", EVIL], [{"missing": 3, EVIL: 1}, {}, {"missing": 1}])


def made() -> str:
    table = Table(EVIL, ("partition", "key"), [{"partition": 1_234_567, "key": EVIL}, {"partition": 2, "key": "x" * 5000}], EVIL)
    section = Section(EVIL, [(EVIL, EVIL)], [EVIL], CHART, [table])
    return report_html(Report(EVIL, EVIL, BAD, [("keys", 12_345)], [EVIL], [section], EVIL))


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "line", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_report_is_one_whole_document_that_needs_nothing_else():
    tags = _Tags()
    tags.feed(made())
    assert tags.open == []
    assert not tags.seen & {"script", "link", "img", "iframe", "object"}
    assert not tags.attributes & {"src", "href", "onload", "onclick"}
    assert "url(" not in made()
    assert "@import" not in made()


def test_texts_are_escaped_and_long_ones_cut():
    text = made()
    assert "<script" not in text
    assert "\x00" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;" in text
    assert "1,234,567" in text
    assert "(5,000 characters)" in text
    assert "x" * 401 not in text


def test_a_chart_is_well_formed_and_says_its_numbers():
    svg = re.search(r"<svg.*?</svg>", made(), re.DOTALL).group()
    titles = [node.firstChild.data for node in minidom.parseString(svg.encode()).getElementsByTagName("title")]
    assert titles[0].startswith("1970-01-01T00:00:00.000Z: 3 missing")
    assert titles[1] == "1970-01-01T00:00:00.040Z: 1 missing"
    assert len(titles) == 2
