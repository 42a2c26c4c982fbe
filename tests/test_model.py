"""Words of the record are texts wherever they are printed, stored or compared, in every version of Python."""

from __future__ import annotations

import json
import sqlite3

import pytest

import jobmeter
from jobmeter.model import Quality, Status, Term

TERMS = [pytest.param(term, id=term.value) for term in (*Status, *Quality)]


@pytest.mark.parametrize("term", TERMS)
def test_a_term_is_its_word_in_text_json_and_sql(term: Term) -> None:
    word = term.value
    assert (word, word, f"{word:>12}", "a " + word) == (str(term), f"{term}", f"{term:>12}", "a %s" % term)  # noqa: UP031
    assert ", ".join([term, term]) == f"{word}, {word}"
    assert json.dumps({term: term}) == json.dumps({word: word})
    assert (word,) == sqlite3.connect(":memory:").execute("SELECT ?", (term,)).fetchone()
    assert type(str(term)) is str


@pytest.mark.parametrize("term", TERMS)
def test_a_term_is_found_by_its_word(term: Term) -> None:
    assert {term.value: 1}[term] == {term: 1}[term.value] == 1
    assert type(term)(term.value) is term
    assert term == term.value
    assert term.meaning.endswith(".")


def test_statuses_are_part_of_the_public_api() -> None:
    assert Status is jobmeter.Status
    assert Status.FAILED == jobmeter.run(["false"], keep=False).status
