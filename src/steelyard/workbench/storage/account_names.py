"""Names of accounts: what can be one, which are taken, and what an erased account is called."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from steelyard.core.names import NAME_RULE, is_name, name_key, normalize_name
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import StoredKey, StoredPerson

_ERASED = "erased"


def erased_name(pseudonym: str) -> str:
    """Return the name of an erased account, which no other account can have."""
    return f"{_ERASED} {pseudonym}"


def checked_name(name: str) -> str:
    """Return a name to log in with, or that of a token, as it is stored. Raises RefusedError for one that is none."""
    stored = normalize_name(name)
    if not is_name(name) or not stored.isprintable() or stored.startswith(erased_name("P-")):
        raise RefusedError(f"{name[:50]!r} is not a name", words="name", where="name", allowed=NAME_RULE)
    return stored


def checked_display_name(words: str) -> str:
    """Return a display name as it is stored, empty for none. Raises ConfigError for one that cannot be shown."""
    if words.strip() and not is_name(words):
        raise RefusedError(f"{words[:50]!r} cannot be shown", words="name", where="display name", allowed=NAME_RULE)
    return normalize_name(words)


def lock_names(session: Session) -> None:
    """Give out names one after another: of two that look alike and come at once, the second one finds the first."""
    session.execute(select(StoredKey.id).with_for_update())


def check_free(session: Session, name: str, display_name: str) -> None:
    """Raise ConfigError for names that look like those of another account: nobody could tell the two apart."""
    lock_names(session)
    for where, wanted, column, do in (
        ("name", name, StoredPerson.name, "choose another name"),
        ("display name", display_name, StoredPerson.display_name, "add to it what tells the two apart"),
    ):
        key = name_key(wanted)
        if any(name_key(other) == key for other in session.scalars(select(column))):
            problem = f"{wanted!r} has an account already"
            raise RefusedError(problem, words="taken", values={"name": wanted}, where=where, do=do)


def checked_skills(skills: Sequence[str]) -> list[str]:
    """Return categories without spaces around them. Raises RefusedError for one that the rule of names refuses."""
    checked = [each.strip() for each in skills]
    for each in checked:
        if not each:
            do = "omit it: without any a person gets all tasks"
            raise RefusedError("a category without a name", words="name", where="skill", do=do)
        # Not in another normal form than that of the data: a person gets the tasks with exactly this category.
        if not is_name(each):
            raise RefusedError(f"{each[:50]!r} is not a name", words="name", where="skill", allowed=NAME_RULE)
    return checked
