"""The page of a comparison: the answer, the trade-off as curves, all points as a table; no script, no network."""

from collections.abc import Sequence
from html import escape
from typing import Any

from markupsafe import Markup

from kanon_spark.explore.compare.result import Cell, Comparison
from kanon_spark.explore.compare.words import (
    CPU,
    FIGURES,
    LOSS,
    WALL,
    Figure,
    answer,
    cell_text,
    least_by_k,
    limits_text,
    rule_text,
)
from kanon_spark.report.curves import Axis, Curve, Line, Size, curves_chart, legend_mark, linear_axis, log_axis
from kanon_spark.report.facts import count, percent
from kanon_spark.report.html import environment

WIDE = Size(940, 430, names=165)


def render_page(comparison: Comparison) -> str:
    """The comparison as one self-contained page; every text in it is escaped."""
    shown = _Shown(comparison)
    page = environment().get_template("compare.html.j2")
    facts = comparison.facts
    return page.render(
        name=facts.name,
        made=facts.made,
        answer=answer(comparison),
        limits=limits_text(comparison.limits),
        rule=rule_text(comparison),
        notes=facts.notes,
        cards=_cards(comparison),
        legend=[(variant.name, legend_mark(style)) for style, variant in enumerate(comparison.variants)],
        wide=shown.chart(LOSS, size=WIDE),
        narrow=shown.chart(LOSS),
        loss=LOSS,
        bounded=any(cell.gcp_bound is not None for cell in comparison.cells),
        panels=shown.panels(),
        zeros=shown.zeros(),
        heads=shown.heads(),
        groups=shown.groups(),
        missing=sum(not cell.measured for cell in comparison.cells),
        figures=shown.figures,
        choice=comparison.best,
        lines=_lines(comparison),
    )


def render_card(comparison: Comparison) -> str:
    """The comparison in a notebook: the answer, and loss by k and method; `page` shows all of it."""
    least = {id(cell) for cell in least_by_k(list(comparison.cells)).values()}
    ks = sorted({cell.k for cell in comparison.cells})
    head = "".join(f"<th style='text-align:right'>k = {k}</th>" for k in ks)
    body = ""
    for variant in comparison.variants:
        cells = "".join(
            f"<td style='text-align:right'>{_card_cell(cell, cell is comparison.best, id(cell) in least)}</td>"
            for cell in comparison.of(variant.name)
        )
        body += f"<tr><th style='text-align:left'>{escape(variant.name)}</th>{cells}</tr>"
    notes = "".join(f"<p>{escape(note)}</p>" for note in comparison.facts.notes)
    return (
        f"<p><b>{escape(answer(comparison).text)}</b></p>{notes}"
        f"<table><caption>loss (GCP)</caption><tr><th></th>{head}</tr>{body}</table>"
    )


def _card_cell(cell: Cell, chosen: bool, least: bool) -> str:
    if not cell.measured:
        return f"<span title='{escape(cell.reason, quote=True)}'>-</span>"
    text = percent(cell.gcp)
    text = f"<b>{text}</b>" if least else text
    return f"{text} ◉" if chosen else text


class _Shown:
    """Figures that have something to show, as charts and as a table."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.ks = sorted({cell.k for cell in comparison.cells})
        self.cells = {(cell.method, cell.k): cell for cell in comparison.cells}
        measured = [cell for cell in comparison.cells if cell.measured]
        self.figures = [figure for figure in FIGURES if any(figure.value(cell) is not None for cell in measured)]
        left_out = {LOSS.key, WALL.key if CPU in self.figures else CPU.key}  # one of both times is enough
        self.drawn = [figure for figure in self.figures if figure.title and figure.key not in left_out]

    def chart(self, figure: Figure, *, size: Size | None = None) -> Markup:
        """Curves of one figure over k."""
        lines = self._lines(figure)
        curves = [self._curve(figure, style) for style in range(len(self.comparison.variants))]
        values = [value for curve in curves for value in curve.values if value is not None]
        if not values:
            return Markup("")
        others = [value for line in lines for value in line.values if value is not None]
        axis = _axis(figure, [*values, *others])
        settings = [str(k) for k in self.ks]
        return curves_chart(figure.title, settings, curves, axis, across="k", lines=lines, size=size)

    def panels(self) -> list[dict[str, Any]]:
        """The charts beside the main one, each with its sentence."""
        return [
            {"title": figure.title, "sentence": figure.sentence, "chart": self.chart(figure)}
            for figure in self.drawn
            if not self._is_zero(figure)
        ]

    def zeros(self) -> list[str]:
        """Figures that are 0 at every point: a sentence says as much as a chart."""
        return [figure.title for figure in self.drawn if self._is_zero(figure)]

    def _is_zero(self, figure: Figure) -> bool:
        return not any(figure.value(cell) for cell in self.comparison.cells)

    def heads(self) -> list[tuple[str, str]]:
        """Columns of the table: name, and what it says."""
        return [(figure.head, figure.sentence) for figure in self.figures]

    def groups(self) -> list[dict[str, Any]]:
        """Lines of the table, by k."""
        least = {id(cell) for cell in least_by_k(list(self.comparison.cells)).values()}
        best, limits = self.comparison.best, self.comparison.limits
        groups = []
        for k in self.ks:
            lines = []
            for style, variant in enumerate(self.comparison.variants):
                cell = self.cells[variant.name, k]
                lines.append(
                    {
                        "method": variant.name,
                        "mark": legend_mark(style),
                        "reason": cell.reason,
                        "cells": [figure.said(cell) for figure in self.figures],
                        "least": id(cell) in least,
                        "fits": bool(limits) and limits.fits(cell),
                        "chosen": cell is best,
                    }
                )
            groups.append({"k": k, "lines": lines})
        return groups

    def _curve(self, figure: Figure, style: int) -> Curve:
        comparison = self.comparison
        cells = [self.cells[comparison.variants[style].name, k] for k in self.ks]
        chosen = next((place for place, cell in enumerate(cells) if cell is comparison.best), None)
        return Curve(
            comparison.variants[style].name,
            style,
            tuple(figure.value(cell) for cell in cells),
            tuple(_said(figure, cell) for cell in cells),
            tuple(not comparison.limits or comparison.limits.fits(cell) for cell in cells),
            chosen,
        )

    def _lines(self, figure: Figure) -> list[Line]:
        """What the curves of a figure are held against."""
        limits, learnt, many = self.comparison.limits, self.comparison.facts.learnt, len(self.ks)
        lines = []
        if figure.key == "gcp":
            by_k = {cell.k: cell.gcp_bound for cell in self.comparison.cells if cell.gcp_bound is not None}
            if by_k:
                lines.append(Line("bound", tuple(by_k.get(k) for k in self.ks), "bound"))
        limit = {"gcp": limits.max_gcp, "risk": limits.max_risk}.get(figure.key)
        if limit is not None:
            lines.append(Line(f"limit {percent(limit)}", (limit,) * many, "limit"))
        if learnt is not None and figure.key in {"tree_accuracy", "bayes_accuracy"}:
            original = learnt.tree if figure.key == "tree_accuracy" else learnt.bayes
            lines.append(Line(f"trained on the original: {percent(original)}", (original,) * many, "other"))
            lines.append(
                Line(f"always the most frequent: {percent(learnt.majority)}", (learnt.majority,) * many, "other")
            )
        return lines


def _axis(figure: Figure, values: Sequence[float]) -> Axis:
    if figure.scale == "log" and min(values) > 0 and max(values) / min(values) > 4:
        return log_axis(values, _short(figure))
    return linear_axis(values, _short(figure), from_zero=figure.scale != "near", least=1e-9)


def _short(figure: Figure) -> Any:
    """How a figure reads at an axis, where there is little room."""
    if figure.text is percent:
        return lambda value: f"{100 * value:.6g}%"
    return lambda value: _powers(value)


def _powers(value: float) -> str:
    for size, sign in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {sign}"
    return f"{value:.3g}"


def _said(figure: Figure, cell: Cell) -> str:
    """What a mark says when it is pointed at."""
    if not cell.measured:
        return cell.reason
    return f"{cell.method}, k = {cell.k}: {figure.title.lower()} {figure.said(cell)}. {cell_text(cell)}."


def _cards(comparison: Comparison) -> list[tuple[str, str]]:
    facts = comparison.facts
    measured = sum(cell.measured for cell in comparison.cells)
    cards = [("rows compared on", count(facts.rows))]
    if facts.unit is not None:
        cards.append(("persons", count(facts.persons)))
    cards += [("distinct combinations", count(facts.signatures)), ("points measured", count(measured))]
    if "total" in facts.seconds:
        cards.append(("seconds in all", f"{facts.seconds['total']:.0f}"))
    return cards


def _lines(comparison: Comparison) -> list[tuple[str, str]]:
    """How the comparison was made."""
    facts = comparison.facts
    taken = "all" if facts.share is None else f"a sample: {percent(facts.share)} of {count(facts.whole)}"
    lines = [
        ("quasi-identifiers", ", ".join(facts.quasi_identifiers)),
        ("rows", f"{count(facts.rows)} ({taken}), aggregated once to {count(facts.signatures)} combinations"),
        ("k counts", f"persons, by {facts.unit}" if facts.unit is not None else "rows"),
        ("asked besides k", "; ".join(facts.demands) or "nothing"),
    ]
    if facts.learnt is not None:
        lines.append(("label to predict", facts.learnt.label))
    lines += [(f"seconds: {name}", f"{value:.1f}") for name, value in facts.seconds.items()]
    lines.append(("versions", ", ".join(f"{name} {version}" for name, version in facts.versions.items())))
    return lines
