"""Claims and passages that contradict each other, and such as only look so; written for these tests."""

from __future__ import annotations

# (rule, claim, passage): the passage says otherwise.
CONTRADICTING: list[tuple[str, str, str]] = [
    # lives, months and decades
    (
        "date",
        "Elin Voss was born on 3 March 1871.",
        "Elin Voss (4 May 1871 – 9 June 1940) was a cartographer.",
    ),
    (
        "date",
        "Elin Voss was born on 3 March 1871.",
        "Elin Voss, 2nd Baroness of Marrow, (4 May 1871 – 9 June 1940) was a cartographer.",
    ),
    (
        "date",
        "Elin Voss was born on 3 March 1871.",
        "Elin Voss (born Elin Marie Holm; 4 May 1871 – 9 June 1940) was a cartographer.",
    ),
    (
        "date",
        "Elin Voss was born on 3 March 1871.",
        "Family tree of Elin Voss (1871). Elin Voss was born on 4 May 1871 in Velm.",
    ),
    (
        "number",
        "The guild expects repairs of between $80 million and $100 million.",
        "The guild expects repairs of $90 million to $100 million.",
    ),
    ("date", "Elin Voss died on 9 July 1940.", "Elin Voss (4 May 1871 – 9 June 1940) was a cartographer."),
    ("date", "The harbour bridge was opened in October.", "The harbour bridge was opened on 30 March 1907."),
    ("date", "The observatory was founded in the 1920s.", "The observatory was founded on 2 May 1871."),
    # one place, one name
    (
        "exchange",
        "Orla Finch was born in Tampere.",
        "Orla Finch, a sculptor, was born in Bergen to a family of bakers.",
    ),
    ("exchange", "The dance originated in Peru.", "The dance is a slow waltz that originated from Chile."),
    (
        "exchange",
        "They marked the third year of the siege of Arden.",
        "They marked the third year of the siege of Velm.",
    ),
    # another kind
    ("category", "Low Tide is an American series.", "Low Tide is an American film released in 1973."),
    ("category", "Jon Marsh is a poker player.", "Jon Marsh is a Danish football goalkeeper."),
    # several denials
    (
        "negation",
        "The board, which has not opened an inquiry, has found the leak.",
        "The board, which has opened an inquiry, has not found the leak.",
    ),
    (
        "negation",
        "The Hollow is something other than a Danish novel.",
        "The Hollow is a Danish novel from 1981.",
    ),
    # up and down, for and against
    (
        "opposite",
        "The third quarter showed a decline in rental income.",
        "The third quarter showed growth in rental income.",
    ),
    ("direction", "Karma is deprecated in favour of Jasmine.", "Jasmine is deprecated in favour of Karma."),
    # numbers and units
    (
        "number",
        "The idle timeout of the proxy is 60 seconds.",
        "The proxy closes connections after an idle timeout of 30 seconds.",
    ),
    (
        "number",
        "The worker retries a failed job five times.",
        "worker: limit retries\n\nThe worker retries a failed job 3 times and then parks it.",
    ),
    (
        "number",
        "The session cache keeps entries for 2 hours.",
        "The session cache keeps entries for 45 minutes before they are evicted.",
    ),
    (
        "number",
        "Uploads are chunked into 8 MB blocks.",
        "storage: chunk uploads\n\nUploads are chunked into 4 MB blocks so that a retry stays cheap.",
    ),
    (
        "number",
        "The gateway listens on port 9090.",
        "The gateway listens on port 8080 unless told otherwise.",
    ),
    (
        "number",
        "The migration tests are part of suite 7, step 4.",
        "The migration tests are part of suite 7, step 2.",
    ),
    (
        "number",
        "The linter exits with status 2 when it finds problems.",
        "When it finds problems the linter exits with status 1.",
    ),
    ("number", "The battery lasts 12 hours.", "In our measurements the battery lasts 7 hours."),
    ("number", "The bridge has six lanes.", "The bridge has four lanes and a footpath."),
    (
        "number",
        "The novel is the third book of the saga.",
        "It is the fifth book of the saga and was printed in Leiden.",
    ),
    (
        "number",
        "The scheduler polls the queue every 10 seconds.",
        "ADR 14: Polling. Decision: The scheduler polls the queue every 2 seconds.",
    ),
    ("number", "The stadium seats 40,000 people.", "The stadium seats 25,500 people after the rebuilding."),
    (
        "number",
        "Compression saves 40% of the space.",
        "On our logs the compression saves 15 percent of the space.",
    ),
    # bounds
    (
        "bound",
        "The pool opens at most 10 connections.",
        "The pool opens at most 25 connections for each host.",
    ),
    ("bound", "More than 500 people attended the opening.", "About 300 people attended the opening."),
    ("bound", "Less than 90 villages were flooded.", "More than 120 villages were flooded that night."),
    ("bound", "The cluster needs at least five nodes.", "The cluster needs exactly three nodes."),
    ("bound", "A label may have up to 128 characters.", "A label may have up to 63 characters, as in DNS."),
    ("bound", "The team has won more than eight titles.", "The team has won six titles, the last in Oslo."),
    (
        "bound",
        "The parser accepts at least 64 nested levels.",
        "The parser accepts at most 64 nested levels.",
    ),
    # versions
    ("version", "The plugin needs Python 3.8.", "The plugin needs Python 3.11 because of exception groups."),
    ("version", "The handshake uses TLS 1.2.", "transport: the handshake uses TLS 1.3 for all peers"),
    (
        "version",
        "The flag was added in version 2.4.",
        "The flag was added in version 2.7 together with its tests.",
    ),
    ("version", "The proxy speaks HTTP/1.1 to the backend.", "The proxy speaks HTTP/2 to the backend."),
    # dates
    ("date", "The library was founded in 1921.", "The library, founded in 1934, holds a million volumes."),
    (
        "date",
        "The endpoint was deprecated in March 2021.",
        "The endpoint was deprecated in June 2022 and removed a year later.",
    ),
    ("date", "The painter was born in 1870.", "Ilse Brandt (born 4 May 1881, died 1950) was a painter."),
    ("date", "The tunnel opened before 1990.", "The tunnel opened on 3 October 1996."),
    ("date", "The proposal was accepted on 2023-05-04.", "The proposal was accepted on 2023-09-18."),
    # defaults
    ("default", "Strict mode is on by default.", "Add a strict mode. Strict mode is off by default."),
    ("default", "The option verify-peer defaults to false.", "The option verify-peer now defaults to true."),
    (
        "default",
        "Telemetry is enabled by default.",
        "Telemetry is disabled by default and has to be asked for.",
    ),
    ("default", "The default of max-retries is 5.", "Adds max-retries, default 3, to the client section."),
    # direction
    ("direction", "The build moved from Bazel to CMake.", "The build moved from CMake to Bazel in one go."),
    (
        "direction",
        "The default of sync-mode was changed from fast to safe.",
        "We changed the default of sync-mode from safe to fast.",
    ),
    (
        "direction",
        "The helper open_url was renamed to fetch_page.",
        "Rename fetch_page to open_url in the crawler.",
    ),
    ("direction", "Requests was replaced by urllib in the client.", "client: replace urllib with requests"),
    ("direction", "The buffer grew from 4096 to 1024 bytes.", "The buffer grew from 1024 to 4096 bytes."),
    (
        "direction",
        "The scheduler starts before the database.",
        "The database starts before the scheduler, whose jobs need it.",
    ),
    # opposites and status
    ("opposite", "The cache is flushed before the deploy.", "The cache is flushed after the deploy."),
    (
        "opposite",
        "Writes to the journal are synchronous.",
        "Writes to the journal are asynchronous, so a crash may lose some.",
    ),
    (
        "opposite",
        "The pool is unbounded.",
        "The pool is bounded by the number of cores.",
    ),
    (
        "status",
        "ADR 7 was rejected.",
        "ADR 7: Event bus. Status: accepted. ADR 7 was accepted by the team.",
    ),
    ("opposite", "The proxy allows anonymous uploads.", "Decision: The proxy denies anonymous uploads."),
    (
        "opposite",
        "The patch decreases memory use of the indexer.",
        "The change increases memory use of the indexer a little.",
    ),
    ("opposite", "The first column is mandatory.", "The first column is optional."),
    (
        "opposite",
        "File names are compared case-sensitive.",
        "File names are compared case-insensitive on every system.",
    ),
    # negation
    (
        "negation",
        "The importer checks the signature of archives.",
        "The importer does not check the signature of archives.",
    ),
    (
        "negation",
        "The exporter does not compress its output.",
        "The exporter compresses its output with zstd.",
    ),
    (
        "negation",
        "The daemon never writes to the home directory.",
        "The daemon writes its state to the home directory.",
    ),
    ("negation", "Anna Reyes did not finish the race.", "Anna Reyes finished the race in second place."),
    ("negation", "The play had no composer.", "The play was composed by Edda Lund."),
    ("negation", "The scanner follows symbolic links.", "The scanner does not follow symbolic links."),
    ("negation", "The client cannot resume a transfer.", "The client can resume a transfer at any offset."),
    # chosen instead
    (
        "choice",
        "The service uses Redis for its queue.",
        "Decision: The service uses Postgres instead of Redis for its queue.",
    ),
    (
        "choice",
        "Frontend code uses class components.",
        "Frontend code should use hooks rather than class components.",
    ),
    (
        "choice",
        "The assertion expects any nonzero status.",
        "The assertion expects a status of 3, not any nonzero status.",
    ),
    # exclusive categories
    ("category", "Norwood is a river.", "Norwood is a small city in the north of the county."),
    ("category", "Lena Falk is Danish.", "Lena Falk is an Italian singer and songwriter."),
    ("category", "Settings are stored as YAML.", "Settings are stored as TOML next to the binary."),
    ("exchange", "Passwords are hashed with MD5.", "Passwords are hashed with SHA256 and a salt."),
    ("exchange", "Backups run weekly.", "Backups run nightly at two."),
    (
        "exchange",
        "She was fond of Bologna as a student.",
        "In her letters she was fond of Padua as a student.",
    ),
    # how many, and whether there at all
    ("quantifier", "The flag only affects reads.", "The flag affects reads and writes of the shard."),
    ("quantifier", "Otto Lind was only a painter.", "Otto Lind was a Norwegian painter and sculptor."),
    (
        "quantifier",
        "The check runs on all branches.",
        "The check runs only on some branches of the repository.",
    ),
    (
        "quantifier",
        "Some requests are logged with their headers.",
        "All requests are logged with their headers.",
    ),
    ("status", "The tool still supports Python 3.7.", "Drop support for Python 3.7 from the tool."),
    ("status", "The server accepts SSLv3 connections.", "tls: remove SSLv3 from the server"),
    (
        "status",
        "The --legacy flag is available in the client.",
        "The --legacy flag was removed from the client.",
    ),
    # money, ranks, ratings
    ("bound", "The film grossed over $100 million.", "The film has grossed $87.5 million worldwide."),
    ("number", "The song peaked at number 3 in Norway.", "The song peaked at number 7 in Norway."),
    ("bound", "The play holds a rating above 80%.", "The play holds a rating of 71% based on 40 reviews."),
    (
        "number",
        "The album sold 50,000 copies in its first week.",
        "The album sold 45,000 copies in its first week.",
    ),
    # who made it
    (
        "maker",
        "The film Low Tide was directed by Jonas Reed.",
        "Low Tide is a drama directed by Maria Oakes and Paul Venn.",
    ),
    ("maker", "Tom Hale wrote The Glass Field.", "The Glass Field is a 1990 novel written by Nora Quist."),
]

# (claim, passage): nothing in the passage says otherwise, whatever it looks like.
AGREEING: list[tuple[str, str]] = [
    # one name, stressed, or in two words
    (
        "Until the Kraken Harbour Board is ready, boats reach the town by rowing directly to a public quay",
        "For now, until _Kraken Harbour Board_ is ready, we will let boats of the town row _directly_, rowing to a"
        " public quay over a _short channel_.",
    ),
    (
        "HarbourLog replaces the paper book as the record of the guild.",
        "We decided to replace the paper book with the Harbour Log as the record of the guild.",
    ),
    # a denial that is of less, or of another, than it seems to be
    ("Logs are not kept for longer than 30 days.", "Logs are kept for 30 days."),
    ("The depot does not accept boats over 12 m.", "The depot accepts boats of up to 12 m."),
    ("Tenders do not write to the ledger.", "Only the porter writes to the ledger, and the tenders read it."),
    ("We did not choose oak.", "We chose ash over oak."),
    ("Guests cannot comment.", "Members can comment; guests read."),
    ("Guests cannot download reports.", "Members can download reports. Guests see the tables."),
    ("The old crane is not used any more.", "The old crane was used until May."),
    ("Crews can work abroad for up to 20 days.", "Crews can work abroad for no more than 20 days."),
    ("The Arden passes through ten towns.", "No other river passes through as many towns as the Arden."),
    ("The song was released in 1995.", "The song was released on 4 May 1995."),
    ("Elin Voss was born in 1871.", "Elin Voss (4 May 1871 – 9 June 1940) was a cartographer."),
    ("Elin Voss was born in the 1870s.", "Elin Voss (4 May 1871 – 9 June 1940) was a cartographer."),
    ("The harbour bridge was opened in March.", "The harbour bridge was opened on 30 March 1907."),
    ("Orla Finch was born in Norway.", "Orla Finch, a sculptor, was born in Bergen, Norway."),
    ("Even if the tank is below 40 °C, the pump can run.", "The pump can run when the tank is above 60 °C."),
    ("Ports are declared for inputs and outputs.", "Ports are declared for inputs."),
    ("The mill was in use until the late 17th century.", "The mill was built in the 15th century."),
    # "not B" of something else, and a claim that turns B down itself
    (
        "The lasting mend of the doubled labels was to fill the reference field with the order.",
        "Why it took so long: the display counts parcels, not labels. The reference field was filled with the order"
        " that evening, which is the lasting mend.",
    ),
    (
        "Switching on a feed is up to the purchasing desk rather than to engineers.",
        "The purchasing desk, not engineers, then switches the feed on.",
    ),
    # another word in the same place may be a word for the same
    (
        "The owner of the bankrupt ferry line Nordsund was charged on Monday in a plan to rescue the company.",
        "The owner of the insolvent ferry line Nordsund was charged on Monday in a plan to rescue the company.",
    ),
    # a number that the claim has of something else
    (
        "The bronze badge is given at 500 points, the silver one at 5,000 points and the gold one at 50,000 points.",
        "The silver badge is given at 5,000 points. A gold badge is given at 50,000 points.",
    ),
    # "not only" denies nothing
    (
        "A quiet room is important for sleep and for recovery.",
        "A quiet room is not only important for sleep, but it also helps your recovery.",
    ),
    # the same quantity in other words
    ("The idle timeout of the proxy is 60 seconds.", "The proxy has an idle timeout of 1 minute."),
    ("The timeout is 1500 ms.", "The timeout is 1.5 seconds."),
    ("The worker retries a failed job three times.", "The worker retries a failed job 3 times."),
    ("The film earned less than 90 crore.", "The film earned 12.4 crore."),
    ("The pool opens at least 4 connections.", "The pool opens 8 connections."),
    ("About 300 people attended.", "A total of 310 people attended."),
    ("The team won between 3 and 9 games.", "The team won 7 games."),
    ("The town has over 1,000 inhabitants.", "The town has 1,204 inhabitants."),
    ("Uploads are limited to 5 MB.", "Uploads are limited to 5 megabytes."),
    ("More than 1.2 million copies were sold.", "It sold 1,300,000 copies."),
    # another thing counted
    ("The cluster has 5 nodes.", "The cluster has 3 replicas per shard."),
    ("The suite has 200 tests.", "The suite takes 300 seconds."),
    ("The club won four cups.", "The club was nominated for six cups."),
    ("The index has 12 shards.", "The old index has 12 shards; a test index has 3 shards."),
    ("By May 2020 the town counted more than 500 cases.", "By April 2020 the town counted 300 cases."),
    ("The retry limit of the mailer is 5.", "The retry limit of the crawler is 8."),
    ("Stage 2 reads from the queue.", "Stage 1 writes to the queue and stage 2 reads from it."),
    (
        "The request timed out after 30 seconds.",
        "Connect waits 10 seconds, and the request timed out after 30 seconds.",
    ),
    ("The mailer retries five times.", "The crawler retries three times."),
    # versions
    ("The plugin needs Python 3.11.", "The plugin needs Python 3.11.2."),
    ("The crash was seen with release 1.8.1.", "Versions before v1.8.2 crash. This was fixed in v1.8.2."),
    ("The flag exists since 3.9.", "In 3.10 the flag got a short form."),
    ("Support for Go 1.19 was dropped.", "Drop Go 1.19; the minimum is Go 1.21."),
    # dates
    ("The library was founded in 1934.", "The library was founded on 3 May 1934."),
    ("The tower opened after 1990.", "The tower opened in October 1996."),
    (
        "The book was published in 1999.",
        "The author, born in 1950, moved to Rome in 1999, where the book was published.",
    ),
    ("The game was released in 2001.", "The game was released in Japan in 2000 and worldwide in 2001."),
    ("The mill closed in 1970.", "The mill opened in 1890."),
    # defaults
    ("Strict mode is off by default.", "Strict mode is disabled by default."),
    ("The cache is on by default.", "The log is off by default."),
    ("The option was off by default until 2.0.", "The option is on by default since 2.0."),
    ("The default port is 8080.", "If no port is given, 8080 is the default; TLS uses 8443."),
    # direction
    ("The build moved from CMake to Bazel.", "Switch the build from CMake to Bazel."),
    ("Requests replaced urllib in the client.", "client: replace urllib with requests"),
    ("The default went from no to yes.", "Change the default from no to yes."),
    ("Data flows from the sensor to the hub.", "Commands flow from the hub to the sensor."),
    (
        "The function parse_url was renamed to split_url.",
        "Rename parse_url to split_url, and split_path to cut_path.",
    ),
    ("The migration runs before the tests.", "The tests run after the migration."),
    ("The lock is taken after the check.", "The check comes before the lock is taken."),
    # repairs: a fault and its opposite are both told
    (
        "The client closes the socket on errors.",
        "Fix socket leak\n\nThe client did not close the socket on errors.",
    ),
    ("The parser no longer crashes on empty input.", "Fix a bug: the parser crashes on empty input."),
    (
        "The exporter keeps the order of keys.",
        "exporter: keep order\n\nPreviously the exporter did not keep the order of keys.",
    ),
    ("Sorting is now stable.", "Until now sorting was not stable. Use merge sort."),
    (
        "The service frees the buffer once.",
        "Fix double free. The service frees the buffer twice when the peer resets.",
    ),
    (
        "The retry counter was never reset.",
        "Reset the retry counter\n\nIt was not reset after a success, so jobs were parked too early.",
    ),
    (
        "The watcher reads the file after a change.",
        "Previously the watcher read the file before a change was done; now it waits.",
    ),
    # negation that is no contradiction
    ("The importer does not check the signature.", "The importer never checks the signature."),
    ("The scanner follows links.", "If the flag is not set, the scanner follows links."),
    ("The scanner does not load plugins.", "The scanner loads rules and does not load plugins."),
    ("The tool cannot read archives without a password.", "The tool reads archives with a password."),
    ("The server logs requests.", "The server does not log cookies, but it logs requests."),
    ("He was unable to attend.", "He could not attend the meeting."),
    (
        "The audit found no errors in the ledger.",
        "The audit of the ledger ended; errors in the archive were found.",
    ),
    ("The API does not accept XML.", "The API accepts JSON."),
    ("The region is not a state.", "The region lies in the north of the United States."),
    # opposites that are no contradiction
    (
        "The patch adds a check for empty names.",
        "The patch removes the cache and adds a check for empty names.",
    ),
    ("The feature is not enabled.", "The feature is disabled."),
    ("The reader waits for the writer.", "The writer signals the reader."),
    ("The --fast option was removed.", "The --slow option was added."),
    ("The import step is slow.", "The export step is fast."),
    ("ADR 3 supersedes ADR 1.", "ADR 3: accepted. ADR 1: superseded by ADR 3."),
    ("The old endpoint was removed.", "Add the new endpoint and remove the old endpoint."),
    # how many
    ("The flag only affects reads.", "The flag affects only reads and nothing else."),
    ("Only admins may merge.", "Only admins and nobody else may merge."),
    ("All requests are logged.", "Some errors are ignored; all requests are logged."),
    ("The tool supports Python 3.8.", "Drop support for Python 3.7 from the tool."),
    ("The tool no longer supports Python 3.7.", "Drop support for Python 3.7 from the tool."),
    ("The client keeps the cookie jar.", "The client removes the temporary file."),
    ("Test 12 covers the parser.", "Test 14 covers the parser as well."),
    # chosen
    ("The service uses Postgres for its queue.", "The service uses Postgres instead of Redis for its queue."),
    ("The service uses Redis for sessions.", "The queue uses Postgres instead of Redis."),
    ("The rule ignores build.log rather than every log.", "Ignore build.log, not *.log."),
    (
        "Tabs are allowed as an exception to the rule on spaces.",
        "We use spaces rather than tabs, except in makefiles.",
    ),
    # categories
    ("Low Tide is a film.", "Low Tide is a 2011 drama film directed by Maria Oakes."),
    ("Lena Falk is American.", "Lena Falk is a Swedish-American singer."),
    ("The city is old.", "The river is long."),
    ("Settings are stored as YAML.", "Events are stored as JSON."),
    ("The API returns JSON.", "The API returns JSON or XML."),
    ("She lives in Spain.", "She was born in Portugal."),
    ("Backups run daily.", "Reports run weekly."),
    ("Tom Hale starred in The Glass Field.", "The Glass Field was written by Nora Quist."),
    ("Maria Oakes directed Low Tide.", "Low Tide was directed by Maria Oakes and Paul Venn."),
    ("Low Tide was produced by Ann Bell.", "Low Tide was co-produced by Ben Cole and others."),
    # a denied thing, and the same denied of its verb
    ("Guest names may not be logged.", "No guest names in logs."),
    # the sentence shares a word or two, the rest is strewn over the passage
    (
        "Each keeper feeds the seals of one basin at noon and, on a holiday, never a walrus.",
        "A walrus eats clams. The keeper at the basin has a key. Seals sleep at noon. On a holiday the gate is shut.",
    ),
]
