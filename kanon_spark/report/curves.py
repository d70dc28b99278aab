"""Curves over a few settings, one for each competitor, as inline SVG: no script, no network, every text escaped.

Competitors are told apart three times: by colour (Okabe and Ito's, which people who see few colours tell apart), by the
shape of their marks, and by their names at the ends of the lines where there is room. Settings stand at equal
distances. A hollow mark does not keep a limit, a ring is the one that was chosen.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

STYLES = 8  # colours and marks that style.css knows; further curves are dashed and begin again
_GAP = 15.0  # least pixels between two names
_LONGEST = 24  # characters of a name


@dataclass(frozen=True)
class Curve:
    """One competitor.

    Attributes:
        name: What it is called.
        style: Number of its colour and mark.
        values: A value for each setting; None where there is none.
        texts: What to say of each value.
        fits: Whether each value keeps all limits.
        chosen: The setting that was chosen, if it is one of this curve's.
    """

    name: str
    style: int
    values: tuple[float | None, ...]
    texts: tuple[str, ...]
    fits: tuple[bool, ...]
    chosen: int | None = None


@dataclass(frozen=True)
class Line:
    """A value to compare with: a name, and a value for each setting or the same for all."""

    name: str
    values: tuple[float | None, ...]
    kind: Literal["bound", "limit", "other"]


@dataclass(frozen=True)
class Size:
    """Pixels of a chart; names stand at the ends of the lines where there is room for them."""

    wide: int = 360
    high: int = 250
    names: int = 0


@dataclass(frozen=True)
class Axis:
    """The upward axis: from where to where, which values are marked, and how they read."""

    low: float
    high: float
    ticks: tuple[float, ...]
    text: Callable[[float], str]
    log: bool = False

    def share(self, value: float) -> float:
        """How far up a value stands, from 0 to 1."""
        low, high, value = (self.low, self.high, value) if not self.log else map(_log, (self.low, self.high, value))
        return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5


def linear_axis(
    values: Sequence[float], text: Callable[[float], str], *, from_zero: bool = True, least: float = 0.0
) -> Axis:
    """An axis with round steps over all values.

    >>> linear_axis([0.03, 0.171], "{:g}".format).ticks
    (0.0, 0.05, 0.1, 0.15, 0.2)
    """
    low = 0.0 if from_zero else min(values, default=0.0)
    high = max([*values, low + least, low + 1e-12])
    step = _step((high - low) / 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(number * step, 12) for number in range(first, max(last, first + 1) + 1))
    return Axis(ticks[0], ticks[-1], ticks, text)


def log_axis(values: Sequence[float], text: Callable[[float], str]) -> Axis:
    """An axis of powers, for values that differ by orders of magnitude; none may be 0.

    >>> log_axis([0.01, 0.5], "{:g}".format).ticks
    (0.01, 0.1, 1.0)
    """
    low, high = math.floor(_log(min(values)) + 1e-9), math.ceil(_log(max(values)) - 1e-9)
    powers = range(low, max(high, low + 1) + 1)
    if len(powers) <= 2:  # one order of magnitude: more steps inside it
        ticks = [factor * 10.0**low for factor in (1, 2, 5, 10)]
    else:
        ticks = [10.0**power for power in powers[:: 1 + (len(powers) - 1) // 6]]
    return Axis(10.0 ** powers[0], 10.0 ** powers[-1], tuple(round(tick, 12) for tick in ticks), text, log=True)


def _step(rough: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * (1 - 1e-9))


def _log(value: float) -> float:
    return math.log10(max(value, 1e-300))


def curves_chart(
    title: str,
    settings: Sequence[str],
    curves: Sequence[Curve],
    axis: Axis,
    *,
    across: str,
    lines: Sequence[Line] = (),
    size: Size | None = None,
) -> Markup:
    """The chart.

    >>> curve = Curve("<b>", 0, (0.1, 0.2), ("", ""), (True, True))
    >>> chart = curves_chart("loss", ["2", "5"], [curve], linear_axis([0.2], str), across="k")
    >>> "<b>" in chart, "polyline" in chart
    (False, True)
    """
    return _Field(settings, axis, size or Size()).chart(title, curves, lines, across)


class _Field:
    """Where things stand inside a chart."""

    def __init__(self, settings: Sequence[str], axis: Axis, size: Size) -> None:
        self.settings, self.axis, self.size = settings, axis, size
        self.left, self.top = 52.0, 14.0
        self.right, self.bottom = size.wide - size.names - 14.0, size.high - 40.0

    def x(self, place: int) -> float:
        return self.left + (place + 0.5) / len(self.settings) * (self.right - self.left)

    def y(self, value: float) -> float:
        return self.bottom - self.axis.share(value) * (self.bottom - self.top)

    def chart(self, title: str, curves: Sequence[Curve], lines: Sequence[Line], across: str) -> Markup:
        # The chosen one lies on top.
        order = sorted(curves, key=lambda curve: curve.chosen is not None)
        parts = [self._grid(), *(self._line(line) for line in lines), *(self._curve(curve) for curve in order)]
        parts += [self._chosen(curve) for curve in curves if curve.chosen is not None]
        if self.size.names:
            parts.append(self._names(curves, lines))
        return Markup(
            '<svg class="curves" role="img" viewBox="0 0 {wide} {high}" xmlns="http://www.w3.org/2000/svg">'
            "<title>{title}</title>{parts}"
            '<text class="axis" x="{middle:.1f}" y="{foot:.1f}" text-anchor="middle">{across}</text></svg>'
        ).format(
            wide=self.size.wide,
            high=self.size.high,
            title=title,
            parts=Markup("").join(parts),
            middle=(self.left + self.right) / 2,
            foot=self.size.high - 6.0,
            across=across,
        )

    def _grid(self) -> Markup:
        rows = [
            Markup(
                '<line class="grid" x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
                '<text class="tick" x="{at:.1f}" y="{base:.1f}" text-anchor="end">{text}</text>'
            ).format(
                left=self.left,
                right=self.right,
                y=self.y(tick),
                at=self.left - 7,
                base=self.y(tick) + 4,
                text=self.axis.text(tick),
            )
            for tick in self.axis.ticks
        ]
        rows += [
            Markup('<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{text}</text>').format(
                x=self.x(place), y=self.bottom + 19, text=setting
            )
            for place, setting in enumerate(self.settings)
        ]
        return Markup("").join(rows)

    def _line(self, line: Line) -> Markup:
        """A line that nobody competes on; what lies under a bound is out of reach, and shaded."""
        places = [(place, value) for place, value in enumerate(line.values) if value is not None]
        if not places:
            return Markup("")
        ends = [(self.left, places[0][1]), *((self.x(place), value) for place, value in places)]
        ends.append((self.right, places[-1][1]))
        points = " ".join(f"{x:.1f},{self.y(value):.1f}" for x, value in ends)
        shade = Markup("")
        if line.kind == "bound":
            corners = f"{self.right:.1f},{self.bottom:.1f} {self.left:.1f},{self.bottom:.1f}"
            shade = Markup('<polygon class="reach" points="{points} {corners}"/>').format(
                points=points, corners=corners
            )
        return Markup('{shade}<polyline class="{kind}" points="{points}"><title>{name}</title></polyline>').format(
            shade=shade, kind=line.kind, points=points, name=line.name
        )

    def _curve(self, curve: Curve) -> Markup:
        style = _style(curve)
        runs: list[list[str]] = [[]]
        marks = []
        for place, value in enumerate(curve.values):
            if value is None:
                runs.append([])
                continue
            x, y = self.x(place), self.y(value)
            runs[-1].append(f"{x:.1f},{y:.1f}")
            shape = _mark(curve.style, x, y, hollow=not curve.fits[place])
            marks.append(Markup("<g>{shape}<title>{text}</title></g>").format(shape=shape, text=curve.texts[place]))
        drawn = [
            Markup('<polyline class="run" points="{points}"/>').format(points=" ".join(run))
            for run in runs
            if len(run) > 1
        ]
        return Markup('<g class="{style}">{drawn}{marks}</g>').format(
            style=style, drawn=Markup("").join(drawn), marks=Markup("").join(marks)
        )

    def _chosen(self, curve: Curve) -> Markup:
        value = None if curve.chosen is None else curve.values[curve.chosen]
        if value is None or curve.chosen is None:
            return Markup("")
        ring = Markup('<circle class="chosen" cx="{x:.1f}" cy="{y:.1f}" r="11"/>')
        if self.size.names:
            ring += Markup('<text class="said" x="{left:.1f}" y="{above:.1f}" text-anchor="end">{said}</text>')
        said = f"{_cut(curve.name)}: {self.axis.text(round(value, 4))}"
        x, y = self.x(curve.chosen), self.y(value)
        return ring.format(x=x, y=y, left=x - 8, above=y - 14, said=said)

    def _names(self, curves: Sequence[Curve], lines: Sequence[Line]) -> Markup:
        """Names at the right ends, moved apart where lines end close to each other."""
        ends: list[tuple[float, float, str, str]] = []
        for curve in curves:
            known = [(place, value) for place, value in enumerate(curve.values) if value is not None]
            if known:
                ends.append((self.y(known[-1][1]), self.x(known[-1][0]), curve.name, _style(curve)))
        for line in lines:
            values = [value for value in line.values if value is not None]
            if values:
                ends.append((self.y(values[-1]), self.right, line.name, f"{line.kind}-name"))
        ends.sort()
        bases = spread_apart([end[0] for end in ends], gap=_GAP, low=self.top, high=self.bottom)
        return Markup("").join(
            Markup(
                '<g class="{style}">'
                '<polyline class="lead" points="{x:.1f},{y:.1f} {near:.1f},{y:.1f} {at:.1f},{base:.1f}"/>'
                '<text class="name" x="{text_x:.1f}" y="{text_y:.1f}">{name}</text></g>'
            ).format(
                style=style,
                x=x + 8 if x < self.right else x,
                y=y,
                near=self.right,
                at=self.right + 10,
                base=base,
                text_x=self.right + 13,
                text_y=base + 4,
                name=_cut(name),
            )
            for (y, x, name, style), base in zip(ends, bases, strict=True)
        )


def spread_apart(places: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Ascending places moved as little as it takes to stand `gap` apart, inside low … high as long as they fit.

    >>> spread_apart([10, 11, 50], gap=10, low=0, high=60)
    [5.5, 15.5, 50.0]
    """
    groups: list[tuple[float, int]] = []  # middle and members of places that touch
    for place in places:
        middle, members = float(place), 1
        while groups and groups[-1][0] + gap * (groups[-1][1] + members) / 2 > middle:
            other, many = groups.pop()
            middle, members = (other * many + middle * members) / (many + members), many + members
        groups.append((middle, members))
    found = [middle + gap * (number - (members - 1) / 2) for middle, members in groups for number in range(members)]
    for index in range(len(found) - 1, -1, -1):
        found[index] = min(found[index], high - gap * (len(found) - 1 - index))
    for index in range(len(found)):
        found[index] = max(found[index], low + gap * index)
    return found


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _style(curve: Curve) -> str:
    return f"c{curve.style % STYLES}" + (" dashed" if curve.style >= STYLES else "")


def legend_mark(style: int) -> Markup:
    """A curve's mark and line, for a legend."""
    return Markup(
        '<svg class="curves legend-mark {style}" viewBox="0 0 30 16" aria-hidden="true">'
        '<polyline class="run" points="1,8 29,8"/>{mark}</svg>'
    ).format(style=_style(Curve("", style, (), (), ())), mark=_mark(style, 15, 8, hollow=False))


# Corners of each mark around its middle, for a radius of 1; a circle where there are none.
_SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
    ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    ((0, 1.2), (1.1, -0.8), (-1.1, -0.8)),
    (
        (-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4),
        (0.4, 1.2), (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4),
    ),
    ((0, -1.2), (1.15, -0.35), (0.7, 1.0), (-0.7, 1.0), (-1.15, -0.35)),
    ((-1.2, -0.7), (1.2, -0.7), (1.2, 0.7), (-1.2, 0.7)),
)  # fmt: skip


def _mark(style: int, x: float, y: float, *, hollow: bool, radius: float = 4.4) -> Markup:
    kind = "mark hollow" if hollow else "mark"
    corners = _SHAPES[style % len(_SHAPES)]
    if not corners:
        return Markup('<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{r}"/>').format(
            kind=kind, x=x, y=y, r=radius
        )
    points = " ".join(f"{x + dx * radius:.1f},{y + dy * radius:.1f}" for dx, dy in corners)
    return Markup('<polygon class="{kind}" points="{points}"/>').format(kind=kind, points=points)
