from __future__ import annotations

import json

from tests.cli.listing import Commands
from tests.store.kept import ids, opened


def test_labels_are_given_changed_and_taken_away(jobmeter: Commands) -> None:
    jobmeter.keep()
    assert "team=z\nnew=a=b\n" == jobmeter("label", "aaa1", "team=z", "new=a=b").out
    assert {"new": "a=b"} == json.loads(jobmeter("label", "aaa1", "team=", "--json").out)
    assert ["aaa1"] == ids(opened(jobmeter.folder), labels={"new": "a=b"})


def test_without_a_label_those_it_has_are_printed(jobmeter: Commands) -> None:
    assert 'team=a\nx y=a"b\n' == jobmeter.keep()("label", "ccc4").out


def test_an_argument_that_is_no_label_is_reported(jobmeter: Commands) -> None:
    done = jobmeter.keep()("label", "aaa1", "team")
    assert (2, "jobmeter: label: 'team' is not KEY=VALUE\n") == (done.code, done.err)
