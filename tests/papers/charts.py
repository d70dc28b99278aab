"""Charts as static SVG files, and one page that shows them with the findings: no script, no network."""

import html
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from papers.paper import Finding, Paper, Plot

_WIDTH, _HEIGHT = 260, 220
_NEEDED = (
    "charts need altair and vl-convert-python: pip install 'kanon-spark[charts]', or leave them out by --no-charts"
)


def need_altair() -> None:
    """Stop with the fix where the packages are missing, before anything is measured."""
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError:
        raise SystemExit(_NEEDED) from None


def svg_of(plot: Plot, cells: pd.DataFrame) -> str:
    """The chart as SVG text."""
    import altair
    import vl_convert

    shown = cells.query(plot.where) if plot.where else cells
    columns = [name for name in (plot.x, plot.y, plot.series, plot.panel) if name]
    chart = (
        altair.Chart(shown[columns].dropna())
        .mark_line(point=True)
        .encode(
            x=altair.X(plot.x, type="quantitative"),
            y=altair.Y(plot.y, type="quantitative", title=plot.title),
            color=altair.Color(plot.series, type="nominal"),
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )
    if plot.panel:
        chart = chart.facet(altair.Column(plot.panel, type="ordinal")).resolve_scale(y="independent")
    return str(vl_convert.vegalite_to_svg(chart.to_json()))


def write_charts(paper: Paper, cells: pd.DataFrame, folder: Path) -> list[Path]:
    """One SVG file per plot."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for plot in paper.plots:
        path = folder / f"{paper.key}_{plot.name}.svg"
        path.write_text(svg_of(plot, cells), encoding="utf-8")
        written.append(path)
    return written


def write_page(told: Sequence[tuple[Paper, Sequence[Finding], Sequence[Path]]], folder: Path) -> Path:
    """All findings and charts on one page, the charts inside it."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>The papers, measured again</title>",
        "<style>body{font:15px/1.5 sans-serif;max-width:1200px;margin:2em auto;padding:0 1em}"
        "table{border-collapse:collapse;width:100%}td,th{border:1px solid #ccc;padding:.3em .6em;text-align:left;"
        "vertical-align:top}svg{max-width:100%;height:auto}</style><h1>The papers, measured again</h1>",
    ]
    for paper, findings, charts in told:
        parts.append(f"<h2>{html.escape(paper.key)} {html.escape(paper.title)}</h2><p>{html.escape(paper.setting)}</p>")
        heads = ("claim", "theirs", "ours", "holds", "why")
        parts.append("<table><tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>")
        for finding in findings:
            texts = (finding.claim, finding.theirs, finding.ours, finding.holds, finding.why)
            parts.append("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in texts) + "</tr>")
        parts.append("</table>")
        parts += [f"<p>{chart.read_text(encoding='utf-8')}</p>" for chart in charts]
    page = folder / "index.html"
    page.write_text("\n".join(parts) + "</html>\n", encoding="utf-8")
    return page
