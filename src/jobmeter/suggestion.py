"""Suggestions for a name that does not exist: the name that was probably meant, else the names that exist."""

from __future__ import annotations

from collections.abc import Iterable

from jobmeter.errors import quote

_MOST_NAMES = 20_000  # each is compared with the wrong name; for more names, that takes too long
_LONGEST = 200  # characters, for the same reason
_LONGEST_LIST = 500  # characters


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` that was probably meant by `name`; None if none is similar.

    A name that begins with `name`, else one that has all its words (`memory_peak` for `peak_memory`), else the most
    similar.
    """
    candidates = list(dict.fromkeys(names))
    if not name or len(candidates) > _MOST_NAMES or len(name) > _LONGEST:
        return None
    import difflib  # late: only mistakes need it

    longer = [candidate for candidate in candidates if candidate.startswith(name)] if len(name) > 1 else []
    same_words = [candidate for candidate in candidates if _has_words(candidate, name)]
    similar = difflib.get_close_matches(name, candidates, n=1)
    return next(iter([*longer, *same_words, *similar]), None)


def _has_words(candidate: str, name: str) -> bool:
    """Whether each word of `name` begins a word of the candidate; False if all words of `name` are single letters."""
    words, theirs = _words(name), _words(candidate)
    return any(len(word) > 1 for word in words) and all(
        any(other.startswith(word) for other in theirs) for word in words
    )


def _words(name: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in name.lower()).split()


def suggest(name: str, names: Iterable[str], otherwise: str | None = None) -> str:
    """`Did you mean 'train'?`; when no name is near, `otherwise`, by default the names that exist."""
    candidates = list(dict.fromkeys(names))
    nearest = nearest_name(name, candidates)
    if nearest is not None:
        return f"Did you mean {quote(nearest)}?"
    if otherwise is not None:
        return otherwise
    if not candidates:
        return "There are none."
    listed = ", ".join(candidates)
    if len(listed) > _LONGEST_LIST:
        listed = listed[:_LONGEST_LIST].rpartition(", ")[0] + ", …"
    return f"There are: {listed}."
