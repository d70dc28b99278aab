"""How a release shows itself in a notebook: one small card."""

from collections.abc import Mapping
from html import escape
from typing import Any


def render_card(manifest: Mapping[str, Any]) -> str:
    """A table of the facts people ask for first; values come from the manifest and are escaped."""
    k, rows, metrics = manifest["privacy"]["k"], manifest["rows"], manifest["metrics"]
    bound = metrics.get("gcp_bound")
    facts = {
        "release": manifest["name"],
        "k asked / achieved": f"{k['asked']} / {k['achieved']}",
        "rows released / suppressed": f"{rows['released']:,} / {rows['suppressed']:,}",
        "classes": f"{manifest['classes']:,}",
        "loss (GCP)": f"{metrics['gcp']:.4f}",
        "no release can be below": f"{bound:.4f} ({metrics['bound_kind']})" if bound else "unknown",
        "method": manifest["method"],
    }
    lines = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(str(text))}</td></tr>"
        for name, text in facts.items()
    )
    return f"<table><caption>kanon_spark release</caption>{lines}</table>"
