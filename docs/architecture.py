"""Pictures of kops' structure, from the code's own imports: those for type checking count too.

``python docs/architecture.py`` writes ``docs/architecture*.svg``, and prints the rooms, arrows and circles of each; ``make docs`` does so.
A room is what lies directly in a package; an arrow is an import of any of its modules by any of another's. A room stands one floor
above the highest room that it imports, so an arrow that runs upward is part of a circle.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

HERE = Path(__file__).resolve().parent
PICTURES = {"architecture": "kops", "architecture-operations": "kops.operations", "architecture-spark": "kops.spark"}
SPLIT = {"kops.plugins"}
"""Packages whose modules stand apart: what plugins import is the highest room, what loads them a low one."""
WIDTH, BOX, FLOOR, MARGIN = 1000, (118, 44), 96, 24
STYLE = (
    "text{font:12px sans-serif;fill:#222}.small{font-size:10px;fill:#666}rect{fill:#eef3fa;stroke:#5b7ba5}"
    "path{fill:none;stroke:#9aa7b8;stroke-width:1}.up{stroke:#d33;stroke-width:2}"
)


@dataclass(frozen=True)
class House:
    """The rooms of a package.

    :param rooms: with the number of their files and lines
    :param arrows: from a room to one that it imports
    """

    place: str
    rooms: dict[str, tuple[int, int]]
    arrows: frozenset[tuple[str, str]]

    @cached_property
    def floors(self) -> dict[str, int]:
        """The floor of each room, the ground being 0; rooms of a circle share one."""
        return {room: self._floor(room, frozenset()) for room in self.rooms}

    @property
    def upward(self) -> list[tuple[str, str]]:
        """The arrows that do not run downward."""
        return sorted((one, other) for one, other in self.arrows if self.floors[one] <= self.floors[other])

    def _floor(self, room: str, above: frozenset[str]) -> int:
        below = [other for one, other in self.arrows if one == room and other not in above and room not in self._reached(other)]
        return 1 + max((self._floor(other, above | {room}) for other in below), default=-1)

    def _reached(self, room: str) -> frozenset[str]:
        if room not in self._known:
            found, new = {room}, [room]
            while new:
                new = [other for one, other in self.arrows if one in new and other not in found]
                found.update(new)
            self._known[room] = frozenset(found)
        return self._known[room]

    @cached_property
    def _known(self) -> dict[str, frozenset[str]]:
        return {}


def house_of(graph: grimp.ImportGraph, place: str) -> House:
    """Return the rooms of a package; the package itself is none."""
    source = HERE.parent / "src"
    inside = graph.find_children(place) - SPLIT | {
        each for room in SPLIT & graph.find_children(place) for each in graph.find_children(room)
    }
    modules = {room: {room, *graph.find_descendants(room)} for room in inside}
    room_of = {module: room for room, some in modules.items() for module in some}
    sizes = {room: _size(source, some) for room, some in modules.items()}
    arrows = {
        (room, room_of[other])
        for module, room in room_of.items()
        for other in graph.find_modules_directly_imported_by(module)
        if room_of.get(other, room) != room
    }
    joined = {room for arrow in arrows for room in arrow}
    return House(place, {room: size for room, size in sizes.items() if room in joined}, frozenset(arrows))


def _size(source: Path, modules: set[str]) -> tuple[int, int]:
    texts = [file.read_text(encoding="utf-8") for module in modules for file in _files(source, module)]
    return sum(len(text.splitlines()) > 1 for text in texts), sum(len(text.splitlines()) for text in texts)


def _files(source: Path, module: str) -> list[Path]:
    path = source / module.replace(".", "/")
    return [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]


def drawn(house: House) -> str:
    """Return a house as SVG."""
    top = max(house.floors.values())
    places: dict[str, tuple[float, float]] = {}
    for floor in range(top + 1):
        rooms = sorted(room for room, at in house.floors.items() if at == floor)
        for number, room in enumerate(rooms):
            places[room] = (WIDTH * (number + 1) / (len(rooms) + 1), MARGIN + (top - floor) * FLOOR)
    height = 2 * MARGIN + top * FLOOR + BOX[1]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"><style>{STYLE}</style>']
    for one, other in sorted(house.arrows):
        (x, y), (to_x, to_y) = places[one], places[other]
        y, middle = y + BOX[1], (y + BOX[1] + to_y) / 2
        kind = ' class="up"' if (one, other) in house.upward else ""
        parts.append(f'<path{kind} d="M{x:.0f} {y:.0f}C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y:.0f}"/>')
    for room, (x, y) in sorted(places.items()):
        files, lines = house.rooms[room]
        parts.append(f'<rect x="{x - BOX[0] / 2:.0f}" y="{y:.0f}" width="{BOX[0]}" height="{BOX[1]}" rx="4"/>')
        parts.append(f'<text x="{x:.0f}" y="{y + 18:.0f}" text-anchor="middle">{escape(room.removeprefix(house.place + "."))}</text>')
        size = f"{files} file{'' if files == 1 else 's'}, {lines:,} lines"
        parts.append(f'<text class="small" x="{x:.0f}" y="{y + 34:.0f}" text-anchor="middle">{size}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> int:
    """Write the pictures and print their figures."""
    graph = grimp.build_graph("kops", cache_dir=None)
    for name, place in PICTURES.items():
        house = house_of(graph, place)
        (HERE / f"{name}.svg").write_text(drawn(house), encoding="utf-8")
        floors = max(house.floors.values()) + 1
        sys.stdout.write(f"{place}: {len(house.rooms)} rooms, {floors} floors, {len(house.arrows)} arrows, {len(house.upward)} upward\n")
        for one, other in house.upward:
            sys.stdout.write(f"  {one} -> {other}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
