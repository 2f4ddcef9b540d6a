"""Who may call: persons, tokens, for whom they act, and who is signed in. These are few: all are in memory at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Row, Table, select

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.log.chain import Document
from vouchgate.storage.log.data.differences import Entry, Kind, Look, entries_of_all, spellings
from vouchgate.storage.tables.claims import TokenRow
from vouchgate.storage.tables.doors import MailRow, SessionRow, SignInLinkRow
from vouchgate.storage.tables.people import IdentityRow, MembershipRow, PersonRow
from vouchgate.storage.tables.tree import LogKeyRow

TOKEN: Table = TokenRow.metadata.tables["token"]
LOG_KEY: Table = LogKeyRow.metadata.tables["log_key"]
PERSON: Table = PersonRow.metadata.tables["person"]
MEMBER: Table = MembershipRow.metadata.tables["membership"]
SESSION: Table = SessionRow.metadata.tables["session"]
LINK: Table = SignInLinkRow.metadata.tables["sign_in_link"]
IDENTITY: Table = IdentityRow.metadata.tables["identity"]
MAIL: Table = MailRow.metadata.tables["mail"]
LONGEST = timedelta(days=7)  # a session, and a link; `storage.identity.sessions`

Key = tuple[str, str, str]  # member, role, owner


def identity(look: Look) -> None:
    """All of it; `look` is at the service's own chain."""
    ended = _persons(look)
    grants = _Grants(look)
    _tokens(look, ended, grants)
    grants.finish()
    _stand_ins(look)
    _signed_in(look)
    _identities(look)
    _mails(look)
    _log_keys(look)


def _persons(look: Look) -> dict[str, datetime]:
    """When persons ended, as the log has it."""
    ended = {}
    actions = (Action.PERSON_CREATED, Action.PERSON_ENDED)
    for key, rows, entries in look.side_by_side(select(PERSON), PERSON.c.id, actions):
        made = next((e for e in entries if e.action == Action.PERSON_CREATED), None)
        end = next((e for e in entries if e.action == Action.PERSON_ENDED), None)
        if end is not None:
            ended[key] = end.at
        if not rows or made is None:
            look.note(Kind.EXTRA if rows else Kind.MISSING, "person", key, entry=made)
            continue
        look.compare("person", key, rows[0], {"created_at": made.at, "ended_at": end and end.at}, made)
        if not made.commits_to(person=key, name=rows[0].name):
            look.note(Kind.ALTERED, "person", key, "name", made)
    return ended


class _Grants:
    """The memberships there are in somebody's own right, and what the log says of them. A token's first ones are in its
    own entry alone."""

    def __init__(self, look: Look) -> None:
        self._look = look
        rows = look.rows(select(MEMBER).where(MEMBER.c.acts_for == ""))
        self.rows: dict[Key, Row[Any]] = {(row.member_id, row.role, row.owner_id): row for row in rows}
        self.entries: defaultdict[Key, list[Entry]] = defaultdict(list)
        for entry in entries_of_all(look.connection, (Action.MEMBERSHIP_GRANTED, Action.MEMBERSHIP_ENDED)):
            for role in Role:
                if entry.commits_to(owner=entry.owner_id, member=entry.subject_id, role=role.value):
                    self.entries[entry.subject_id, role.value, entry.owner_id].append(entry)
        self._first: set[Key] = set()
        self._by_token: defaultdict[str, set[Key]] = defaultdict(set)
        for key in self.rows.keys() | self.entries.keys():
            self._by_token[key[0]].add(key)

    def first(self, token_id: str) -> set[Key]:
        """What a token may have been made with: what is there without an entry, or ended before it was granted."""
        found = set()
        for key in self._by_token[token_id]:
            entries = self.entries.get(key)
            if (entries is None and key in self.rows) or (
                entries and entries[0].action == Action.MEMBERSHIP_ENDED
            ):
                found.add(key)
        return found

    def made_with(self, keys: Iterable[Key]) -> None:
        """A token's entry commits to these."""
        self._first |= set(keys)

    def finish(self) -> None:
        """Notes what the log says otherwise."""
        for key in sorted(self.rows.keys() | self.entries.keys()):
            row, entries, name = self.rows.get(key), self.entries.get(key, []), " ".join(key)
            if row is not None:
                self._look.compare("membership", name, row, {"until": None})
            last = entries[-1] if entries else None
            granted = last is not None and last.action == Action.MEMBERSHIP_GRANTED
            if row is None:
                if granted:
                    self._look.note(Kind.MISSING, "membership", name, entry=last)
            elif last is None and key in self._first:
                continue
            elif not granted:
                self._look.note(Kind.EXTRA, "membership", name, entry=last)
            elif last is not None:
                self._look.compare("membership", name, row, {"since": last.at}, last)


def _tokens(look: Look, ended: Mapping[str, datetime], grants: _Grants) -> None:
    actions = (Action.TOKEN_CREATED, Action.TOKEN_ASSIGNED, Action.TOKEN_REVOKED)
    for key, rows, entries in look.side_by_side(select(TOKEN), TOKEN.c.id, actions):
        by_action = {Action(entry.action): entry for entry in reversed(entries)}  # the first of each
        made = by_action.get(Action.TOKEN_CREATED)
        if not rows or made is None:
            look.note(Kind.EXTRA if rows else Kind.MISSING, "token", key, entry=made)
            continue
        row = rows[0]
        look.compare("token", key, row, {"created_at": made.at}, made)
        assigned, revoked = by_action.get(Action.TOKEN_ASSIGNED), by_action.get(Action.TOKEN_REVOKED)
        if assigned is not None and not assigned.commits_to(token=key, person=row.person_id):
            look.note(Kind.ALTERED, "token", key, "person_id", assigned)
        over = [at for at in (revoked and revoked.at, ended.get(row.person_id or "")) if at is not None]
        look.compare("token", key, row, {"revoked_at": min(over, default=None)}, revoked)
        _grant(look, row, made, assigned is not None, grants)


def _grant(look: Look, row: Row[Any], made: Entry, assigned: bool, grants: _Grants) -> None:
    """What a token stands for, and the owners it was made for."""
    first = grants.first(row.id)
    if _holds(row, made, assigned, {key[2] for key in first}):
        grants.made_with(first)
        for key in first & grants.rows.keys():
            if not grants.entries.get(key):
                look.compare("membership", " ".join(key), grants.rows[key], {"since": made.at}, made)
        if any(key[1] != row.role for key in first):
            look.note(Kind.ALTERED, "membership", row.id, "role", made)
        if made.form == 1:
            look.uncovered["the digest of a token's secret (made before version 2 of its entry)"] += 1
        return
    # One membership too few or too many is told by trying; what is left is the token itself.
    names = {key[2] for key in first}
    for owner_id in sorted({key[2] for key in grants.rows.keys() | grants.entries.keys()}):
        if _holds(row, made, assigned, names ^ {owner_id}):
            grants.made_with(key for key in first if key[2] != owner_id)
            if owner_id not in names:
                look.note(Kind.MISSING, "membership", f"{row.id} {row.role} {owner_id}", entry=made)
            return  # what is too many has no entry of its own, and is told with the memberships
    grants.made_with(first)
    columns = "name, role, any_owner, new_owners, sources, expires_at, person_id, secret_digest or its owners"
    look.note(Kind.ALTERED, "token", row.id, columns, made)


def _holds(row: Row[Any], made: Entry, assigned: bool, owners: set[str]) -> bool:
    """Whether a token's first entry commits to it; see `storage.identity.tokens`."""
    grant: dict[str, Any] = {
        name: row._mapping[name] for name in ("id", "name", "role", "any_owner", "sources")
    }
    grant["owners"] = sorted(owners)
    person = None if assigned else row.person_id
    wider = {name: value for name, value in (("new_owners", row.new_owners), ("person", person)) if value}
    second = made.form == 2
    for expires_at in spellings(row.expires_at):
        about = grant | {"expires_at": expires_at} | wider
        if second:
            about["secret"] = row.secret_digest
        if made.commits_to(2 if second else 1, **about):
            return True
        # Before there was a right to name new owners, every agent for any owner had it.
        if not second and row.new_owners and row.any_owner and row.role == Role.AGENT.value:
            about.pop("new_owners")
            if made.commits_to(**about):
                return True
    return False


def _stand_ins(look: Look) -> None:
    """Who rules in the stead of another, until when: each as it was granted, and none that was ended."""
    granted: defaultdict[tuple[str, str], list[Entry]] = defaultdict(list)
    ended: defaultdict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in entries_of_all(look.connection, (Action.STAND_IN_GRANTED, Action.STAND_IN_ENDED)):
        by_action = granted if entry.action == Action.STAND_IN_GRANTED else ended
        by_action[entry.subject_id, entry.owner_id].append(entry)
    for row in look.rows(select(MEMBER).where(MEMBER.c.acts_for != "")):
        name = f"{row.member_id} {row.role} {row.owner_id} for {row.acts_for}"
        about = {"owner": row.owner_id, "member": row.member_id, "role": row.role, "acts_for": row.acts_for}
        about["until"] = row.until and row.until.astimezone(UTC).isoformat()
        holding, over = granted[row.member_id, row.owner_id], ended[row.member_id, row.owner_id]
        end = next((entry for entry in reversed(over) if entry.commits_to(**about)), None)
        like_it = of_it = next((entry for entry in reversed(holding) if entry.commits_to(**about)), None)
        if of_it is None:
            like_it = next((entry for entry in holding if entry.at == row.since), None)
        if like_it is None or (end is not None and end.seq > like_it.seq):
            look.note(Kind.EXTRA, "membership", name, entry=end)
            continue
        holding.remove(like_it)
        if of_it is None:
            look.note(Kind.ALTERED, "membership", name, "role, acts_for or until", like_it)
        look.compare("membership", name, row, {"since": like_it.at}, like_it)
    for (member_id, owner_id), left in granted.items():
        # An end names its grant in digests only: of those whose rows are gone, as many as ended are no more.
        for entry in left[len(ended[member_id, owner_id]) :]:
            look.note(Kind.MISSING, "membership", f"{member_id} {owner_id}", entry=entry)


def _signed_in(look: Look) -> None:
    """Every session and link was begun as the log says, and was not ended. What is over is forgotten without a word."""
    sessions = {row.digest: row for row in look.rows(select(SESSION))}
    links = {row.digest: row for row in look.rows(select(LINK))}
    for table, there, begins in (
        (SESSION, sessions, Action.SESSION_STARTED),
        (LINK, links, Action.LINK_CREATED),
    ):
        begun: dict[str, Entry] = {}
        alike: defaultdict[str | datetime, set[str]] = defaultdict(set)  # by token, and by when it began
        for digest, row in there.items():
            alike[row.token_id].add(digest)
            alike[row.created_at].add(digest)
        for entry in look.entries((begins, Action.SESSION_ENDED)):
            for digest in alike[entry.subject_id] | alike[entry.at]:
                if entry.content_digest == digest or entry.holds(Document(digest.encode())):
                    begun[digest] = entry
        for digest, row in there.items():
            entry_of = begun.get(digest)
            if entry_of is None or entry_of.action == Action.SESSION_ENDED:
                look.note(Kind.EXTRA, table.name, digest, entry=entry_of)
                continue
            expected: dict[str, Any] = {"token_id": entry_of.subject_id, "created_at": entry_of.at}
            if table is SESSION:
                expected["expires_at"] = entry_of.at + LONGEST
            elif row.expires_at > entry_of.at + LONGEST:
                look.note(Kind.ALTERED, table.name, digest, "expires_at", entry_of)
            look.compare(table.name, digest, row, expected, entry_of)


def _identities(look: Look) -> None:
    """What people sign in with elsewhere; one of a token that was revoked lets nobody in, and may be gone."""
    holders = {row.id: row for row in look.rows(select(TOKEN.c.id, TOKEN.c.person_id, TOKEN.c.revoked_at))}
    actions = (Action.IDENTITY_LINKED, Action.IDENTITY_UNLINKED)
    for key, rows, entries in look.side_by_side(select(IDENTITY), IDENTITY.c.token_id, actions):
        last, holder = (entries[-1] if entries else None), holders.get(key)
        linked = last if last is not None and last.action == Action.IDENTITY_LINKED else None
        if linked is None:
            if rows:
                look.note(Kind.EXTRA, "identity", key, entry=last)
            continue
        for row in rows:
            about = {"issuer": row.issuer, "sub": row.sub, "token_id": key}
            if not linked.commits_to(**about, person_id=holder and holder.person_id):
                look.note(Kind.ALTERED, "identity", key, "issuer, sub or token_id", linked)
            look.compare("identity", key, row, {"linked_at": linked.at}, linked)
        if not rows and (holder is None or holder.revoked_at is None):
            look.note(Kind.MISSING, "identity", key, entry=linked)


def _mails(look: Look) -> None:
    """Who gets digests, of whose queues, and when."""
    for key, rows, entries in look.side_by_side(
        select(MAIL), MAIL.c.id, (Action.MAIL_CREATED, Action.MAIL_REMOVED)
    ):
        made = next((entry for entry in entries if entry.action == Action.MAIL_CREATED), None)
        removed = any(entry.action == Action.MAIL_REMOVED for entry in entries)
        if rows and (made is None or removed):
            look.note(Kind.EXTRA, "mail", key, entry=made)
        elif rows and made is not None:
            row = rows[0]
            about = {
                name: getattr(row, name) for name in ("id", "address", "person_id", "owners", "schedule")
            }
            if not made.commits_to(**about):
                look.note(Kind.ALTERED, "mail", key, "address, person_id, owners or schedule", made)
            look.compare("mail", key, row, {"created_at": made.at}, made)
        elif made is not None and not removed:
            look.note(Kind.MISSING, "mail", key, entry=made)


def _log_keys(look: Look) -> None:
    """Which keys sign or signed the log."""
    actions = (Action.LOG_KEY_ADDED, Action.LOG_KEY_RETIRED)
    for key, rows, entries in look.side_by_side(select(LOG_KEY), LOG_KEY.c.id, actions):
        added = next((entry for entry in entries if entry.action == Action.LOG_KEY_ADDED), None)
        end = next((entry for entry in entries if entry.action == Action.LOG_KEY_RETIRED), None)
        if not rows or added is None:
            look.note(Kind.EXTRA if rows else Kind.MISSING, "log_key", key, entry=added)
            continue
        times = {"added_at": added.at, "retired_at": end and end.at}
        look.compare("log_key", key, rows[0], times, end or added)
        if not added.commits_to(key=rows[0].verifier):
            look.note(Kind.ALTERED, "log_key", key, "verifier", added)
