"""Charts as inline SVG: no script, no network, and every text escaped."""

from collections.abc import Sequence

from markupsafe import Markup

_LABEL, _BAR, _VALUE, _LINE = 190, 420, 90, 26  # pixels of a line's parts


def bar_chart(title: str, bars: Sequence[tuple[str, float, str]], *, whole: float | None = None) -> Markup:
    """Horizontal bars: name, size and the text behind it. `whole` is the size of a full bar (default: the largest).

    >>> "&lt;b&gt;" in bar_chart("loss", [("<b>", 0.5, "50%")], whole=1.0)
    True
    """
    if not bars:
        return Markup("")
    full = whole if whole is not None else max(size for _, size, _ in bars)
    lines = [_line(index, name, size / full if full else 0.0, text) for index, (name, size, text) in enumerate(bars)]
    return Markup(
        '<svg class="chart" role="img" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">'
        "<title>{title}</title>{lines}</svg>"
    ).format(width=_LABEL + _BAR + _VALUE, height=_LINE * len(bars), title=title, lines=Markup("").join(lines))


def _line(index: int, name: str, share: float, text: str) -> Markup:
    top = index * _LINE
    short = name if len(name) <= 24 else name[:23] + "…"
    return Markup(
        '<g><title>{name}: {text}</title><text x="{name_x}" y="{base}" text-anchor="end">{short}</text>'
        '<rect class="track" x="{left}" y="{top}" width="{full}" height="{thick}" rx="3"/>'
        '<rect class="bar" x="{left}" y="{top}" width="{width}" height="{thick}" rx="3"/>'
        '<text x="{value_x}" y="{base}">{text}</text></g>'
    ).format(
        name=name,
        short=short,
        text=text,
        name_x=_LABEL - 10,
        base=top + 17,
        left=_LABEL,
        top=top + 4,
        full=_BAR,
        thick=_LINE - 8,
        width=f"{min(max(share, 0.0), 1.0) * _BAR:.1f}",
        value_x=_LABEL + _BAR + 10,
    )
