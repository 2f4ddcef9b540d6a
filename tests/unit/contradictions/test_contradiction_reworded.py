"""A second set of pairs, written after the rules: other subjects, and claims in other words than the source's."""

from __future__ import annotations

import pytest

from vouchgate.ingest.contradictions.rules import contradictions

# The rule that finds it, the claim, and a passage that says otherwise.
OTHERWISE = [
    (
        "default",
        "The DNS cache keeps entries for 5 minutes by default.",
        "DNS cache entries are now kept for 60 seconds by default instead of forever.",
    ),
    (
        "number",
        "The expect 100 timeout is two seconds.",
        "http: make the Expect timeout configurable libcurl waited 1 second for a 100-continue response.",
    ),
    (
        "negation",
        "Event handlers are stored in a separate table.",
        "ADR 8: Event handlers Decision: Event handlers are kept in memory, not in a separate table.",
    ),
    (
        "choice",
        "The build uses GNU make.",
        "ADR 21: Build tool Decision: We build with Ninja instead of GNU make, because incremental builds are faster.",
    ),
    (
        "number",
        "Replicas send acks to the master every ten seconds.",
        "Replication: replicas ack every second. The replica sends REPLCONF ACK to the master every second.",
    ),
    (
        "negation",
        "The --follow option works for several files.",
        "log --follow: die when more than one path is given. The --follow option does not work for several files.",
    ),
    (
        "default",
        "TLS session resumption is enabled by default for FTP data connections.",
        "ftp: TLS session resumption for data connections is disabled by default; set the flag to enable it.",
    ),
    (
        "direction",
        "HELLO with version 3 switches the connection to RESP2.",
        "The HELLO command with version 3 switches the connection from RESP2 to RESP3.",
    ),
    (
        "opposite",
        "Clients must authenticate after CONFIG.",
        "AUTH: Clients must authenticate before CONFIG, otherwise the command is refused.",
    ),
    (
        "opposite",
        "The pack file is written uncompressed.",
        "pack-objects: The pack file is written compressed with zlib at level 6.",
    ),
    (
        "choice",
        "Rate limiting is the job of each service.",
        "ADR 30: Rate limits. Decision: rate limiting is the job of the gateway, not of each service.",
    ),
    (
        "choice",
        "All components are written in JavaScript.",
        "ADR 2: TypeScript. Decision: All new components are written in TypeScript rather than JavaScript.",
    ),
    (
        "version",
        "git-svn handles renames since 1.6.",
        "git-svn handles renames since 1.5.4, see the release notes.",
    ),
    (
        "negation",
        "Unknown keys in the config file are ignored.",
        "config: Unknown keys in the config file are now an error and are not ignored.",
    ),
    (
        "number",
        "Merging needs one approval.",
        "Decision: Merging needs two approvals, one of them from an owner.",
    ),
    (
        "negation",
        "Feature flags live in a database table.",
        "Feature flags are read from environment variables and not from a database table.",
    ),
    (
        "version",
        "The script requires Perl 5.6.",
        "Bump the required Perl version. The script requires Perl 5.8 or later.",
    ),
    (
        "opposite",
        "The hook runs after the commit message is edited.",
        "hook: The hook runs before the commit message is edited, so it can prepare it.",
    ),
    (
        "negation",
        "Secrets may be kept in the repository.",
        "ADR 5: Secrets. Decision: Secrets must not be kept in the repository.",
    ),
    (
        "opposite",
        "The socket is opened in blocking mode.",
        "The socket is opened in non-blocking mode from now on.",
    ),
    (
        "status",
        "Support for SPDY was added.",
        "Remove support for SPDY. Support for SPDY was removed as nobody uses it.",
    ),
    (
        "number",
        "The band has five members.",
        "Halden is a band consisting of four members: Ola, Per, Siv and Ida.",
    ),
    ("number", "The album reached number one.", "The album peaked at number four on the charts."),
    ("bound", "He won fewer than three medals.", "He won five medals at the games, two of them gold."),
    ("category", "The Old Mill is a novel.", "The Old Mill is a 1931 black-and-white film by Rolf Dahl."),
    ("date", "The show ended in 2010.", "The show ran for four seasons and ended on 12 May 2013."),
    ("bound", "The school has under 500 students.", "As of 2019 the school has 870 students."),
    ("category", "Harbor Street is a song by Kano.", "Harbor Street is the second studio album by Kano."),
    ("negation", "Eva Dahl has never acted.", "Eva Dahl has acted in more than thirty plays."),
    ("opposite", "Eva Dahl is unmarried.", "Eva Dahl married the writer Jon Berg in 2001."),
    ("quantifier", "The river flows through Spain only.", "The river flows through Spain and Portugal."),
    ("opposite", "The game received negative reviews.", "The game received positive reviews from critics."),
    (
        "bound",
        "The film has a rating below 60 percent.",
        "The film holds an approval rating of 71% based on 45 reviews.",
    ),
    ("bound", "Season 3 has more than 20 episodes.", "Season 3 has 13 episodes."),
    (
        "bound",
        "There have been over 3,000 confirmed cases in Arland.",
        "As of 20 March, there were 2,150 confirmed cases in Arland.",
    ),
    (
        "quantifier",
        "The importer accepts only folders.",
        "importer: files, too Let the importer accept single files as well. Previously it only accepted folders.",
    ),
    (
        "negation",
        "The retry hack is still needed.",
        "The retry hack is no longer necessary and is reverted here.",
    ),
    (
        "choice",
        "The lookup rounds down.",
        "lookup: round up instead of down, since the caller adds one anyway.",
    ),
    (
        "status",
        "The --quick-start flag is still supported.",
        "tls: drop the field. The --quick-start flag is now deprecated.",
    ),
    (
        "negation",
        "The checker loads the plugin code.",
        "The checker only looks at the manifest and does not try to load the plugin code.",
    ),
    (
        "bound",
        "The back-off grows to 10 seconds.",
        "When nothing is ready a slowly growing back-off is used (up to a max of 800 milliseconds).",
    ),
    (
        "choice",
        "Plugins talk to each other over HTTP.",
        "Decision: plugins talk to each other over events rather than HTTP.",
    ),
    ("status", "Modules use wildcard imports.", "ADR: imports. Decision: Avoid wildcard imports in modules."),
    (
        "negation",
        "The archive keeps symlinks as they are.",
        "The archive does not keep symlinks, it stores what they point at.",
    ),
    (
        "number",
        "Nested templates may be ten levels deep.",
        "Nested templates may be five levels deep at most.",
    ),
    (
        "opposite",
        "The server picks the newest protocol.",
        "The server picks the oldest protocol both sides speak.",
    ),
    ("opposite", "The header is case sensitive.", "The header name is case insensitive."),
    ("negation", "The index is built on start.", "The index is not built on start but on the first query."),
    ("choice", "Errors go to stdout.", "Errors go to stderr instead of stdout."),
    ("number", "Releases are cut every two weeks.", "Decision: Releases are cut every six weeks."),
    ("negation", "Admins can read the secrets.", "Admins cannot read the secrets, only rotate them."),
]

# Nothing in the passage says otherwise.
NOT_OTHERWISE = [
    (
        "Redis no longer crashes when the list is empty.",
        "Fix crash in LPOS with empty list When the list is empty LPOS crashed. Now it returns nil.",
    ),
    (
        "The timeout is now 60 seconds.",
        "http: raise the timeout The timeout of 30 seconds was too short for slow links. Make it 60 seconds.",
    ),
    (
        "The parser rejects negative sizes.",
        "parser: reject negative sizes The parser accepted negative sizes and then overflowed. Error out early.",
    ),
    (
        "git fetch used to ignore the depth option.",
        "fetch: honor --depth git fetch ignores the depth option when a bundle is given. Pass it on.",
    ),
    (
        "The flag was off by default before this release.",
        "The flag is now on by default. It was off by default because of bug 12.",
    ),
    (
        "Connections are reused across requests.",
        "Reuse connections. Connections were not reused across requests when the proxy changed; they are now.",
    ),
    (
        "The test failed on Windows.",
        "tests: make 1234 pass on Windows The test does not fail on Windows any longer.",
    ),
    (
        "The HTTP/2 backend was removed in favour of nghttp2.",
        "http2: replace the own HTTP/2 backend with nghttp2",
    ),
    (
        "curl supports HTTP/3 with quiche.",
        "docs: HTTP/3 with quiche is supported, HTTP/3 with msh3 is not supported.",
    ),
    (
        "The option takes a number of seconds.",
        "The option takes a number of milliseconds or, with a suffix, of seconds.",
    ),
    ("Node 18 is required.", "Drop Node 16. Node 18 or later is required; Node 20 is tested as well."),
    (
        "The function does not free its argument.",
        "free: the caller keeps the argument The function must not free its argument; the caller frees it.",
    ),
    ("Named exports are preferred.", "ADR: avoid default exports and prefer named exports."),
    (
        "Default exports are allowed for lazy modules.",
        "We stop using default exports except for lazy modules.",
    ),
    (
        "The cache holds at most 100 entries.",
        "The cache evicts the oldest entry when there are more than 100 entries.",
    ),
    ("The script runs without root.", "The script does not need root."),
    ("The script needs no network.", "The script runs without a network connection, but the tests need one."),
    (
        "The lock is released on errors.",
        "lock: release on errors The lock was held on errors, so the next writer waited forever.",
    ),
    ("Writers wait for readers.", "Readers do not wait for writers. Writers wait for readers."),
    (
        "The daemon sleeps between polls.",
        "The daemon polls every 5 seconds and does not sleep while work is left.",
    ),
    (
        "An empty value disables the limit.",
        "Setting the limit to 0 or an empty value disables it; the limit is enabled by default.",
    ),
    (
        "The feature can be disabled with --no-color.",
        "Colors are enabled by default. Use --no-color to disable.",
    ),
    ("The author has signed off the patch.", "Patches without a sign-off are not accepted."),
    (
        "The server closes idle connections.",
        "The client opens the connections, and the server closes idle ones after 60 seconds.",
    ),
    ("Keys are sorted ascending.", "Keys are sorted in ascending order, values in descending order."),
    ("Version 2.0 added the hook.", "The hook was added in 2.0 and extended in 2.3."),
    ("The fix was backported to 1.8.", "The fix is in 1.9 and was backported to the 1.8 branch."),
    ("Issue 12 is closed.", "Issue 12 was open for a year. It is closed now."),
    ("Uploads over 5 MB are refused.", "Uploads may be up to 5 MB in size."),
    ("The limit was raised from 1 to 5 MB.", "upload: raise the limit The limit goes from 1 MB to 5 MB."),
    (
        "Retries start after one second.",
        "The first retry comes after 1 second, the second one after 4 seconds.",
    ),
    ("The table has an index on the owner.", "The table had no index on the owner; add one."),
    (
        "The command prints nothing when it succeeds.",
        "The command prints an error when it fails and nothing when it succeeds.",
    ),
    ("The command takes no arguments.", "The command fails when arguments are given."),
    ("Only root can read the file.", "The file can be read only by root."),
    ("The API returns 404 for unknown ids.", "The API returns 404 for unknown ids and 409 for duplicates."),
    ("Test 1500 covers the retry.", "Add test 1500 and test 1501 for the retry."),
    ("The client retries three times.", "The server retries twice; the client retries three times."),
    (
        "The proxy forwards cookies.",
        "Do not forward cookies to other hosts. The proxy forwards cookies only to the origin.",
    ),
    ("Memory use fell by half.", "Memory use fell from 200 MB to 100 MB."),
    ("Marta Lind is Norwegian.", "Marta Lind (born 1974) is a Norwegian skier living in Sweden."),
    ("Marta Lind was born in the 1970s.", "Marta Lind (born 3 June 1974) is a skier."),
    ("Marta Lind is an athlete.", "Marta Lind is a Norwegian cross-country skier."),
    ("Halden is a group.", "Halden is a band from Oslo."),
    (
        "The album was released in 2009 in Europe.",
        "The album was released in 2009 in Norway and in 2010 in Sweden.",
    ),
    ("The film was written by two people.", "The film was written by Anna Moe and Kari Vik."),
    ("The film did not win an award.", "The film was nominated for an award but did not win."),
    ("Eva Dahl has worked as an actress.", "Eva Dahl is a singer and actress."),
    ("Eva Dahl is not a singer.", "Eva Dahl is an actress. She does not sing."),
    (
        "The film has a rating over 70%.",
        "The film holds a rating of 71% based on 45 reviews, an average of 6.1 out of 10.",
    ),
    ("The film is based on more than 40 reviews.", "The film holds a rating of 71% based on 45 reviews."),
    (
        "Fewer than 2,000 people died in Arland.",
        "In Arland 1,420 people died and 20,000 people were infected.",
    ),
    ("More than 15,000 cases were reported.", "As of May, 20,000 cases were reported, with 1,420 deaths."),
    ("The show had at least three seasons.", "The show ran for four seasons."),
    ("The town has around 5,000 residents.", "The town has 4,870 residents."),
    ("The player scored 20 goals in 2011.", "The player scored 12 goals in 2010 and 20 in 2011."),
    ("The player scored over 30 goals.", "The player scored 20 goals in the league and 31 goals in all."),
    ("The novel was published after 1950.", "The novel was published in 1961."),
    ("He directed the film.", "The film was directed by Rolf Dahl."),
    ("Rolf Dahl produced no films after 1990.", "Rolf Dahl produced his last film in 1988."),
    ("She moved to Paris in 1990.", "She was born in 1960 in Lyon and moved to Paris in 1990."),
    ("The bridge is longer than 200 meters.", "The bridge is 0.3 km long."),
    ("The war ended before 1920.", "The war ended in 1918."),
    ("The station opened in the 19th century.", "The station opened in 1874."),
    ("The singer has two children.", "The singer has a son, a daughter and three dogs."),
    ("Kano was the first to record it.", "Kano recorded it first; the second to record it was Lume."),
    (
        "He plays for the national team.",
        "He has never played for the youth team, but plays for the national team.",
    ),
    ("Their second album sold well.", "Their first album sold badly, their second album sold well."),
    (
        "The book has been translated into more than five languages.",
        "The book has been translated into 12 languages.",
    ),
    ("Arland borders two countries.", "Arland borders Norland in the north and Sorland in the south."),
]
# Said otherwise, and not found: what a rule would have to know goes beyond words.
NOT_FOUND = [
    (
        "The function returns NULL on success.",
        "The function returns NULL on failure and a pointer on success.",
    ),
    ("The play stars no women.", "The play stars Anna Moe and Kari Vik."),
    ("Marta Lind was born in Oslo.", "Marta Lind (born 3 June 1974 in Bergen) is a skier."),
]


@pytest.mark.parametrize(("rule", "claim", "passage"), OTHERWISE)
def test_a_passage_that_says_otherwise(rule: str, claim: str, passage: str) -> None:
    assert rule in {conflict.rule for conflict in contradictions(claim, passage)}


@pytest.mark.parametrize(("claim", "passage"), NOT_OTHERWISE)
def test_a_passage_that_does_not_say_otherwise(claim: str, passage: str) -> None:
    assert contradictions(claim, passage) == ()


@pytest.mark.parametrize(("claim", "passage"), NOT_FOUND)
def test_what_is_known_not_to_be_found(claim: str, passage: str) -> None:
    assert contradictions(claim, passage) == ()
