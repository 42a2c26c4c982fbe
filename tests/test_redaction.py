"""Secrets in command lines are hidden, and ordinary arguments are not."""

from __future__ import annotations

import pytest

from jobmeter.errors import UsageError
from jobmeter.redaction import Redaction

SECRET = "s3cr3t-Xyz"

HIDDEN = [
    (["tool", f"--password={SECRET}"], ["tool", "--password=REDACTED"]),
    (["tool", "--password", SECRET, "in.txt"], ["tool", "--password", "REDACTED", "in.txt"]),
    (["tool", "--db-password", SECRET], ["tool", "--db-password", "REDACTED"]),
    (["tool", "-password", SECRET], ["tool", "-password", "REDACTED"]),
    (["tool", f"--password={SECRET} with blanks"], ["tool", "--password=REDACTED"]),
    (["tool", f"token={SECRET}"], ["tool", "token=REDACTED"]),
    (["tool", f"api_key={SECRET}"], ["tool", "api_key=REDACTED"]),
    (["tool", f"--apikey={SECRET}"], ["tool", "--apikey=REDACTED"]),
    (["tool", f"secret={SECRET}"], ["tool", "secret=REDACTED"]),
    (["tool", "--github-token", SECRET], ["tool", "--github-token", "REDACTED"]),
    (["env", f"AWS_SECRET_ACCESS_KEY={SECRET}", "aws"], ["env", "AWS_SECRET_ACCESS_KEY=REDACTED", "aws"]),
    (["env", f"PGPASSWORD={SECRET} two", "psql"], ["env", "PGPASSWORD=REDACTED", "psql"]),
    (["curl", "-H", f"Authorization: Bearer {SECRET}", "x"], ["curl", "-H", "Authorization: Bearer REDACTED", "x"]),
    (["curl", "-H", f"X-Api-Key: {SECRET}"], ["curl", "-H", "X-Api-Key: REDACTED"]),
    (["git", "clone", f"https://me:{SECRET}@host/x.git"], ["git", "clone", "https://me:REDACTED@host/x.git"]),
    (["git", "clone", "https://ghp_0123456789abcdefghij@h/x"], ["git", "clone", "https://REDACTED@h/x"]),
    (["curl", f"https://h/x?a=1&token={SECRET}&b=2"], ["curl", "https://h/x?a=1&token=REDACTED&b=2"]),
    (["java", f"-Ddb.password={SECRET}", "Main"], ["java", "-Ddb.password=REDACTED", "Main"]),
    (["helm", "--set", f"db.password={SECRET}"], ["helm", "--set", "db.password=REDACTED"]),
    (["sh", "-c", f"PASSWORD={SECRET} ./run in.txt"], ["sh", "-c", "PASSWORD=REDACTED ./run in.txt"]),
    (["sh", "-c", f"a --password {SECRET} | b"], ["sh", "-c", "a --password REDACTED | b"]),
    (["sh", "-c", f"a --password='{SECRET} x' b"], ["sh", "-c", "a --password='REDACTED' b"]),
    (["curl", "-d", f'{{"user":"me","password":"{SECRET}"}}'], ["curl", "-d", '{"user":"me","password":"REDACTED"}']),
    (["mysql", f"-p{SECRET}", "-h", "db"], ["mysql", "-pREDACTED", "-h", "db"]),
    (["/usr/bin/sshpass", "-p", SECRET, "ssh", "x"], ["/usr/bin/sshpass", "-p", "REDACTED", "ssh", "x"]),
]

ORDINARY = [
    ["python", "train.py", "--max-tokens", "100", "--max-token", "100", "--pad-token", "<pad>", "--eos_token=</s>"],
    ["docker", "run", "-p", "8080:80", "-v", "secret:/run/secret", "image"],
    ["tar", "-pxf", "a.tar"],
    ["mkdir", "-p", "a/b"],
    ["kubectl", "get", "secret", "mine"],
    ["grep", "password", "file.txt"],
    ["passwd", "me"],
    ["python", "tokenize.py", "tokens=5", "--tokenizer=bpe", "--tokenizer", "bpe"],
    ["sort", "--key=2", "-k", "3", "--keyboard=de"],
    ["ssh", "-i", "id_rsa", "git@host:repo"],
    ["git", "clone", "ssh://git@host/x.git", "https://host:8080/a@b"],
    ["ansible", "--private-key", "~/.ssh/id"],
    ["tool", "--ask-password", "--verbose"],
    ["tool", "--password-file", "/run/x", "--password-file=/run/x", "--token-count=5"],
    ["tool", "--secretary", "Ann", "author=me", "bearer of news"],
]


@pytest.mark.parametrize(("command", "shown"), HIDDEN, ids=lambda value: " ".join(value)[:40])
def test_a_secret_is_hidden(command: list[str], shown: list[str]) -> None:
    assert Redaction().words(command) == shown
    assert SECRET not in Redaction().text(" ".join(command)) or command[0].endswith(("mysql", "sshpass"))


@pytest.mark.parametrize("command", ORDINARY, ids=lambda value: " ".join(value)[:40])
def test_an_ordinary_argument_is_shown(command: list[str]) -> None:
    assert Redaction().words(command) == command
    assert Redaction().text(" ".join(command)) == " ".join(command)


def test_without_patterns_nothing_is_hidden() -> None:
    command = ["tool", "--password=x", "https://a:b@c"]
    assert Redaction([]).words(command) == command


def test_own_patterns_replace_the_default_ones_or_add_to_them() -> None:
    command = ["tool", "--password=x", "--licence", "y", "nr 4111-1111"]
    assert Redaction(["licence"]).words(command) == ["tool", "--password=x", "--licence", "REDACTED", "nr 4111-1111"]
    assert Redaction(["default", "licence", r"/\d{4}-(\d{4})/"]).words(command) == [
        "tool", "--password=REDACTED", "--licence", "REDACTED", "nr 4111-REDACTED",
    ]  # fmt: skip
    assert Redaction(["default", "!password"]).words(command) == command


@pytest.mark.parametrize("pattern", ["", "*", "--", "/(/", "!"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="is not a"):
        Redaction([pattern])


LONG = ["a" * 100_000, "password" * 10_000, "://" + ":" * 50_000, "token='" + "\\" * 50_000, "a.-" * 50_000 + "token"]


@pytest.mark.parametrize("word", LONG, ids=[word[:9] for word in LONG])
def test_no_text_takes_long(word: str) -> None:
    Redaction().words(["tool", word])
    Redaction().text(word)
