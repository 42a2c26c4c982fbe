"""The names of environment variables are found in code, however they are written."""

from __future__ import annotations

from pathlib import Path

from tests.doc_variables import dictionary_keys, environment_keys, possible_variables

CODE = """
import os
from os import environ, getenv

VARIABLE = "BY_CONSTANT"
_SEVERAL = ("ONE_OF_TWO", "TWO_OF_TWO")
SLURM = "IDLE"

def read(environment):
    os.environ.get("GOT"), os.environ["INDEXED"], os.getenv("OLD"), getenv("SHORT"), "ASKED" in environ
    environ.setdefault("SET", ""), environment.pop("TAKEN", None), os.environ.get(VARIABLE)
    child_environment = {"GIVEN": "1", **environment}
    return {"WITHOUT": child_environment}
"""


def test_every_way_to_name_a_variable_is_found(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(CODE)
    keys = {"GOT", "INDEXED", "OLD", "SHORT", "ASKED", "SET", "TAKEN", "GIVEN"}
    assert keys == environment_keys(tmp_path)
    assert keys | {"BY_CONSTANT", "ONE_OF_TWO", "TWO_OF_TWO"} == possible_variables(tmp_path)
    assert {"GIVEN", "WITHOUT"} == dictionary_keys(tmp_path)
