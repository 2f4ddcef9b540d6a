"""The words around a number or a run of hex digits that say it is no issue or no commit."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A commit is spoken of: hex digits close behind are its id, whatever else the sentence names.
COMMIT = _words("""
    bisected changeset changesets cherry-picked commit commits committed rev reverted reverting
    reverts revision revisions
""")
# Keys that hold a commit id in `key: id` and `key=id` with nothing between.
COMMIT_KEYS = COMMIT | _words("by fix fixes follow-up in ref refs revert see since")

DIGEST = _words("""
    checksum checksums crc crc32 crc32c digest digests etag fingerprint md5 md5sum sha-1 sha-256
    sha1 sha1sum sha256 sha256sum
""")
# Right before hex digits, these say what the digits identify, and it is no commit.
OTHER_THINGS = (
    DIGEST
    # git objects that are not commits, and content-addressed things
    | _words("blob tree object oid index image layer container pod build-id")
    # ids of records
    | _words("""
        account correlation customer device guid id identifier instance invoice job-id order request
        serial session span trace trace-id transaction tx user uuid volume wallet
    """)
    # secrets
    | _words("cookie key nonce passphrase password salt secret signature token")
    # machine values
    | _words("""
        address bitmask byte bytes canary code color colour constant error exception handle hex
        literal magic mask offset opcode payload pointer register status string value
    """)
)
# May stand between such a word and the digits: "the key is", "the password hash".
FILLERS = _words("is was are hash number no named called")

# A word written against a hash (`issue#12`, `fixes#12`): any other makes it a name or an anchor.
GLUED_TO_HASH = _words("""
    bug close closed closes fix fixed fixes gh issue issues mr pr prs pull ref refs resolve
    resolved resolves see ticket
""")
# A hash after one of these counts something, or names a place in a file.
ORDINALS = (
    # parts of a text
    _words("""
        chapter column comment example fig figure footnote item lesson line no note number page
        paragraph part row section slide table vol volume
    """)
    # parts of a programme, a protocol or a run
    | _words("""
        arg argument attempt block build byte case cid core cpu disk entry error experiment field
        frame job key level mutex node packet param parameter patch phase pin port position round
        rule run sample signal slot step stream test thread track unit version warning worker
    """)
    # ranks and choices
    | _words("""
        answer candidate channel choice draft episode floor hypothesis option place player point
        priority question rank ranked rated reason revision room season tier tip
    """)
)
# What people number who keep no code: a hash after one of these names what a sentence is about ("Order #312 was paid"),
# unless a word before it cites ("see ticket #12", "fixed in ticket #12").
DESK = _words("""
    account appointment batch booking case claim contract customer delivery desk employee invoice locker lot member
    order parcel patient payment receipt reservation room shipment suite ticket
""")
CITING = _words("""
    by cf close closed closes fix fixed fixes from in per ref refs resolve resolved resolves see since under via
""")
BEFORE_RANK = _words("the our your their its my")  # "the #1 cause"
