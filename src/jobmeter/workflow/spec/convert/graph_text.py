"""Reading the graphs that Snakemake (`--dag`) and Nextflow (`-with-dag`) print: DOT or Mermaid."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_DOT = re.compile(r"\s*(?:strict\s+)?digraph\s*(\"[^\"]*\"|\w*)\s*\{")
_MERMAID = re.compile(r"\s*(?:%%[^\n]*\n\s*)*(?:flowchart|graph)\s+\w+")
_DOT_NODE = re.compile(r'^\s*"?(\w+)"?\s*\[((?:[^\]"]|"(?:[^"\\]|\\.)*")*)\]', re.MULTILINE)
_DOT_EDGE = re.compile(r'^\s*"?(\w+)"?\s*->\s*"?(\w+)"?', re.MULTILINE)
_ATTRIBUTE = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^,\s\]]+))')
_MERMAID_NODE = re.compile(
    r"^\s*(\w+)\s*(\(\(|\(\[|\[\[|\[/|\(|\[|\{)(.*?)(\)\)|\]\)|\]\]|/\]|\)|\]|\})\s*$", re.MULTILINE
)
_MERMAID_EDGE = re.compile(r"^\s*(\w+)\s*-{2,}>\s*(?:\|[^|]*\|\s*)?(\w+)", re.MULTILINE)
_RESERVED = ("graph", "node", "edge")


class Vertex(NamedTuple):
    """A node of a graph."""

    id: str
    label: str  # its lines are separated by \n
    is_job: bool  # and not a channel or an operator


class Graph(NamedTuple):
    tool: str
    vertices: dict[str, Vertex]
    edges: list[tuple[str, str]]  # (first, second): the second needs the first

    def needs(self) -> dict[str, list[str]]:
        """The jobs that each job needs directly, or only through channels and operators."""
        incoming: dict[str, list[str]] = {}
        for start, end in self.edges:
            incoming.setdefault(end, []).append(start)
        return {vertex.id: self._jobs_before(vertex.id, incoming) for vertex in self.vertices.values() if vertex.is_job}

    def _jobs_before(self, vertex: str, incoming: Mapping[str, list[str]]) -> list[str]:
        jobs: dict[str, None] = {}
        visited, rest = {vertex}, [vertex]
        while rest:
            for start in incoming.get(rest.pop(0), ()):
                if start in visited:
                    continue
                visited.add(start)
                if start in self.vertices and self.vertices[start].is_job:
                    jobs[start] = None
                else:
                    rest.append(start)
        return list(jobs)


def read_graph(text: str) -> Graph | None:
    """The graph in `text`; None if it is not a graph of these tools."""
    if match := _DOT.match(text):
        is_snakemake = "snakemake" in match[1]
        return Graph(
            "Snakemake" if is_snakemake else "Nextflow", _dot_vertices(text, is_snakemake), _edges(_DOT_EDGE, text)
        )
    if _MERMAID.match(text):
        return Graph("Nextflow", _mermaid_vertices(text), _edges(_MERMAID_EDGE, text))
    return None


def _edges(pattern: re.Pattern[str], text: str) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in pattern.finditer(text)]


def _dot_vertices(text: str, is_snakemake: bool) -> dict[str, Vertex]:
    vertices = {}
    for match in _DOT_NODE.finditer(text):
        if match[1] in _RESERVED:
            continue
        attributes = {each[1]: each[2] if each[2] is not None else each[3] for each in _ATTRIBUTE.finditer(match[2])}
        label = re.sub(
            r"\\(.)", lambda escape: {"n": "\n", "l": "\n"}.get(escape[1], escape[1]), attributes.get("label", "")
        )
        # Nextflow draws channels as points and operators as circles; processes have no shape of their own.
        is_job = is_snakemake or (bool(label) and attributes.get("shape") in (None, "box", "ellipse"))
        vertices[match[1]] = Vertex(match[1], label, is_job)
    return vertices


def _mermaid_vertices(text: str) -> dict[str, Vertex]:
    vertices = {}
    for match in _MERMAID_NODE.finditer(text):
        if match[1] in ("subgraph", "end", "click", "style", "classDef"):
            continue
        label = match[3].strip().strip('"').strip()
        # Processes are rectangles, in newer versions stadiums `([NAME])`; operators are circles, channels have no name.
        is_job = bool(re.fullmatch(r"[A-Z_][\w:]*", label)) and match[2] in ("[", "([", "(")
        vertices[match[1]] = Vertex(match[1], label, is_job)
    return vertices
