"""The frame of every page: style, scripts and data in one file, which loads and sends nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from jobmeter import __version__

_PLOTS = "'unsafe-inline' 'unsafe-eval'"
"""The script sources of a page with charts: plotly.js compiles functions from strings."""


def document(
    title: str, body: Sequence[str], data: Any = None, *, styles: Sequence[str] = (), scripts: Sequence[str] = ()
) -> str:
    """The whole file. `data` is what the scripts draw: with it the page has plotly.js and `charts.js`.

    `styles` and `scripts` are names of files in the directory of this module.
    """
    charts = data is not None
    script_source = _PLOTS if charts else "'unsafe-inline'" if scripts else "'none'"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # The page sends no request, even if a library tries to.
            f'<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; script-src {script_source}; '
            "style-src 'unsafe-inline'; img-src data: blob:; font-src data:\">",
            f"<title>{escape(title)} · jobmeter</title>",
            f"<style>{''.join(_file(name) for name in ('page.css', *styles))}</style>",
            f"<script>{_plotly()}</script></head>" if charts else "</head>",
            "<body><main>",
            *body,
            f"<footer>Made by jobmeter {__version__}. This page is complete in itself.</footer></main>",
            *([f'<script type="application/json" id="data">{json_in_page(data)}</script>'] if charts else []),
            *(f"<script>{_file(name)}</script>" for name in ((("charts.js",) if charts else ()) + tuple(scripts))),
            "</body></html>\n",
        ]
    )


def tiles(figures: Sequence[tuple[str, str]]) -> str:
    """Figures side by side, each with its name."""
    parts = [f"<div><dt>{escape(name)}</dt><dd>{escape(words)}</dd></div>" for name, words in figures]
    return f'<dl class="tiles">{"".join(parts)}</dl>'


def json_in_page(value: Any) -> str:
    """JSON that is safe in a script element, whatever names it contains."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace("\u2028", "\\u2028")


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    return script
