"""Charts as inline SVG: no script, no network, and every text escaped.

The two colours (blue, orange) are told apart by people who see few colours, and differ in brightness on paper.
"""

from collections.abc import Sequence

from markupsafe import Markup

_LABEL, _BAR, _VALUE, _LINE = 190, 400, 180, 26  # pixels of a line's parts
_WIDE, _HIGH, _EDGE = 640, 260, 46  # pixels of a curve's field
_SHORT = 24  # characters of a label


def bar_chart(title: str, bars: Sequence[tuple[str, float, str]], *, whole: float | None = None) -> Markup:
    """Horizontal bars: name, size and the text behind it. `whole` is the size of a full bar (default: the largest).

    >>> "&lt;b&gt;" in bar_chart("loss", [("<b>", 0.5, "50%")], whole=1.0)
    True
    """
    if not bars:
        return Markup("")
    full = whole if whole is not None else max(size for _, size, _ in bars)
    lines = [
        _line(index, name, [("bar", size / full if full else 0.0)], text)
        for index, (name, size, text) in enumerate(bars)
    ]
    return _field(title, lines)


def pair_chart(title: str, bars: Sequence[tuple[str, float, float, str]]) -> Markup:
    """Two bars per line, before and after: name, both sizes and the text behind them.

    >>> pair_chart("age", [("20", 0.5, 0.25, "50% → 25%")]).count('class="after"')
    1
    """
    full = max((max(before, after) for _, before, after, _ in bars), default=0.0)
    if not bars or not full:
        return Markup("")
    lines = [
        _line(index, name, [("before", before / full), ("after", after / full)], text)
        for index, (name, before, after, text) in enumerate(bars)
    ]
    return _field(title, lines)


def spread_chart(title: str, lines: Sequence[tuple[str, float, float, float, float, str]]) -> Markup:
    """Shares in the whole (a mark) and in classes (a bar, a line to the most): name, whole, low, high, most, text."""
    full = max((most for _, _, _, _, most, _ in lines), default=0.0)
    if not lines or not full:
        return Markup("")
    drawn = []
    for index, (name, whole, low, high, most, text) in enumerate(lines):
        top = index * _LINE
        parts = [_rect("track", 0.0, 1.0, top + 9, 6), _rect("reach", 0.0, most / full, top + 9, 6)]
        parts += [_rect("bar", low / full, max(0.004, (high - low) / full), top + 6, 12)]
        parts += [_rect("mark", whole / full - 0.003, 0.006, top + 2, 20)]
        drawn.append(_texts(index, name, Markup("").join(parts), text))
    return _field(title, drawn)


def curve_chart(title: str, points: Sequence[tuple[float, float]], *, across: str, up: str) -> Markup:
    """A rising curve over shares from 0 to 1: (x, y) in order; x is scaled to its largest.

    >>> "polyline" in curve_chart("closings", [(0.0, 0.1), (0.2, 1.0)], across="loss", up="rows")
    True
    """
    if not points:
        return Markup("")
    most = max(x for x, _ in points) or 1.0
    left, right, bottom = _EDGE, _EDGE + _WIDE, _HIGH + 26

    def at(x: float, y: float) -> str:
        return f"{left + x / most * _WIDE:.1f},{bottom - min(1.0, y) * _HIGH:.1f}"

    steps = [at(points[0][0], 0.0), *(at(x, y) for x, y in points)]
    ticks = Markup("").join(
        Markup(
            '<line class="grid" x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>'
            '<text x="{tick}" y="{base}" text-anchor="end">{share:.0%}</text>'
        ).format(
            left=left,
            right=right,
            y=bottom - share * _HIGH,
            tick=left - 6,
            base=bottom - share * _HIGH + 4,
            share=share,
        )
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    below = Markup("").join(
        Markup('<text x="{x}" y="{y}" text-anchor="middle">{share:.3g}%</text>').format(
            x=left + part * _WIDE, y=bottom + 18, share=100 * part * most
        )
        for part in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    return Markup(
        '<svg class="chart" role="img" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">'
        "<title>{title}</title>{ticks}{below}"
        '<text x="{middle}" y="{foot}" text-anchor="middle">{across}</text><text x="{left}" y="{head}">{up}</text>'
        '<polyline class="curve" points="{steps}"/></svg>'
    ).format(
        width=right + 30,
        height=bottom + 42,
        title=title,
        ticks=ticks,
        below=below,
        middle=(left + right) / 2,
        foot=bottom + 36,
        across=across,
        left=left,
        head=12,
        up=up,
        steps=" ".join(steps),
    )


def _field(title: str, lines: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="chart" role="img" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">'
        "<title>{title}</title>{lines}</svg>"
    ).format(width=_LABEL + _BAR + _VALUE, height=_LINE * len(lines), title=title, lines=Markup("").join(lines))


def _line(index: int, name: str, shares: Sequence[tuple[str, float]], text: str) -> Markup:
    """One line of bars, one above the other, on a track."""
    top, thick = index * _LINE + 4, (_LINE - 8) / len(shares)
    bars = [_rect("track", 0.0, 1.0, top, _LINE - 8)]
    bars += [_rect(kind, 0.0, share, top + place * thick, thick) for place, (kind, share) in enumerate(shares)]
    return _texts(index, name, Markup("").join(bars), text)


def _texts(index: int, name: str, inside: Markup, text: str) -> Markup:
    base = index * _LINE + 17
    short = name if len(name) <= _SHORT else name[: _SHORT - 1] + "…"
    return Markup(
        "<g><title>{name}: {text}</title>"
        '<text x="{name_x}" y="{base}" text-anchor="end">{short}</text>{inside}'
        '<text x="{value_x}" y="{base}">{text}</text></g>'
    ).format(
        name=name, text=text, name_x=_LABEL - 10, base=base, short=short, inside=inside, value_x=_LABEL + _BAR + 10
    )


def _rect(kind: str, begin: float, share: float, top: float, thick: float) -> Markup:
    begin, share = min(max(begin, 0.0), 1.0), min(max(share, 0.0), 1.0)
    return Markup(
        '<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2"/>'
    ).format(kind=kind, x=_LABEL + begin * _BAR, y=top, width=share * _BAR, height=thick)
