"""Pairs of claims with the verdict they must get, written by hand.

An edit changes one of the base claims, which are long enough that one exchanged word leaves them over the
threshold. A whole pair stands for itself.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Verdict = Literal["duplicate", "conflict"]

BASES = {
    "export": "Every night at 02:30 UTC the export job copies all finished invoices from Postgres into the archive "
    "bucket, writes one line for each of them to the ledger, and notifies the finance team by email.",
    "gateway": "The public gateway closes idle connections after 30 seconds, retries failed requests at most 3 times "
    "with exponential backoff, and doesn't forward the Authorization header to any upstream service "
    "outside our cluster.",
    "cache": "Since version v2.4.1 the session cache in Redis keeps each entry for 15 minutes, is limited to 512 MB "
    "of memory, and evicts the oldest entries before the limit is reached on any node.",
    "deploy": "On 2024-03-18 the platform team moved the billing service from Jenkins to GitHub Actions, enabled "
    "required reviews for the main branch, and never allows direct pushes to production without an approved ticket.",
    "search": "The search index is rebuilt by the worker pool whenever max_retries is exceeded, because the old "
    "segments cannot be merged while readers hold a lock on the directory under /var/lib/search.",
    "auth": "Alice decided that access tokens expire after 1 hour, refresh tokens expire after 30 days, and every "
    "client must send its requests over TLS 1.3 with a certificate signed by the internal authority.",
}


class Edit(NamedTuple):
    """`old` in a base claim becomes `new`."""

    kind: str
    verdict: Verdict
    base: str
    old: str
    new: str


class Pair(NamedTuple):
    """Two whole claims."""

    kind: str
    verdict: Verdict
    claim: str
    other: str


def edits(kind: str, verdict: Verdict, *changes: tuple[str, str, str]) -> list[Edit]:
    return [Edit(kind, verdict, *change) for change in changes]


def pairs(kind: str, verdict: Verdict, *texts: tuple[str, str]) -> list[Pair]:
    return [Pair(kind, verdict, *both) for both in texts]


EDITS = [
    *edits(
        "number", "conflict",
        ("gateway", "30 seconds", "45 seconds"), ("gateway", "3 times", "5 times"), ("cache", "512", "1024"),
        ("cache", "15 minutes", "16 minutes"), ("auth", "1 hour", "2 hour"), ("auth", "30 days", "90 days"),
        ("export", "one line", "two line"), ("export", "all finished", "most finished"),
        ("gateway", "3 times", "three hundred times"), ("auth", "30 days", "-30 days"),
        ("cache", "15 minutes", "<15 minutes"), ("cache", "512 MB", "512² MB"), ("auth", "1 hour", "½ hour"),
        ("gateway", "at most", "at least"), ("auth", "every client", "any client"),
        ("cache", "15 minutes", "1.5 minutes"), ("cache", "512 MB", "5120MB"),
    ),
    *edits(
        "version", "conflict",
        ("cache", "v2.4.1", "v2.4.2"), ("cache", "v2.4.1", "v2.5"), ("auth", "TLS 1.3", "TLS 1.2"),
        ("cache", "v2.4.1", "v2.4.1-rc1"),
    ),
    *edits(
        "date", "conflict",
        ("deploy", "2024-03-18", "2024-03-19"), ("deploy", "2024-03-18", "2025-03-18"),
        ("deploy", "2024-03-18", "Monday"), ("export", "Every night", "Every morning"), ("export", "night", "week"),
    ),
    *edits("time", "conflict", ("export", "02:30", "03:30"), ("export", "UTC", "CET"), ("export", "02:30", "02:30pm")),
    *edits(
        "unit", "conflict",
        ("gateway", "30 seconds", "30 minutes"), ("gateway", "30 seconds", "30 ms"), ("cache", "MB", "GB"),
        ("cache", "512 MB", "512GB"), ("auth", "30 days", "30 weeks"), ("auth", "1 hour", "1 day"),
        ("cache", "15 minutes", "15s"), ("cache", "512 MB", "512 %"), ("cache", "MB", "MiB"),
    ),
    *edits(
        "identifier", "conflict",
        ("search", "max_retries", "min_retries"), ("search", "/var/lib/search", "/var/lib/cache"),
        ("search", "max_retries", "maxRetries"), ("gateway", "Authorization", "X-Forwarded-For"),
        ("search", "max_retries", "max_retries[]"),
    ),
    *edits(
        "name", "conflict",
        ("export", "Postgres", "MySQL"), ("cache", "Redis", "Memcached"), ("deploy", "Jenkins", "Travis"),
        ("deploy", "GitHub", "GitLab"), ("auth", "Alice", "Bob"), ("auth", "Alice", "Alicia"),
        ("cache", "Redis", "Rediss"), ("deploy", "Jenkins", "Jenkin"),
    ),
    *edits(
        "negation", "conflict",
        ("gateway", "doesn't forward", "does forward"), ("gateway", "doesn't forward", "forwards"),
        ("search", "cannot be", "can be"), ("deploy", "never allows", "allows"),
        ("deploy", "never allows", "always allows"),
        ("deploy", "without", "with"), ("export", "copies", "never copies"), ("export", "copies", "no longer copies"),
        ("export", "and notifies", "and not notifies"), ("cache", "is limited", "is not limited"),
        ("cache", "is limited", "isn't limited"), ("cache", "is limited", "isn’t limited"),
        ("search", "is rebuilt", "is hardly rebuilt"), ("auth", "must send", "must not send"),
        ("auth", "must send", "mustn't send"), ("auth", "and every", "and not every"),
        ("export", "copies all", "copies not all"), ("gateway", "closes idle", "closes only idle"),
        ("gateway", "retries failed", "retries _not_ failed"), ("gateway", "to any", "to no"),
        ("search", "by the worker", "without the worker"), ("deploy", "enabled", "un-enabled"),
        ("search", "cannot be", "can hardly be"), ("export", "notifies", "neither notifies"),
    ),
    *edits(
        "antonym", "conflict",
        ("deploy", "enabled", "disabled"), ("cache", "before the", "after the"), ("cache", "oldest", "newest"),
        ("gateway", "public", "private"), ("gateway", "outside", "inside"), ("auth", "internal", "external"),
        ("gateway", "closes", "opens"), ("search", "old", "new"), ("search", "readers", "writers"),
        ("auth", "must", "may"), ("deploy", "required", "optional"), ("auth", "client", "server"),
        ("deploy", "allows", "forbids"), ("auth", "signed", "unsigned"), ("gateway", "failed", "successful"),
        ("auth", "send", "receive"), ("gateway", "upstream", "downstream"), ("deploy", "pushes", "pulls"),
        ("search", "exceeded", "undercut"), ("gateway", "after", "before"), ("deploy", "production", "staging"),
        ("deploy", "approved", "rejected"), ("cache", "Since", "Until"), ("search", "because", "although"),
        ("search", "while", "unless"),
    ),
    *edits(
        "exchanged word", "conflict",
        ("export", "invoices", "contracts"), ("export", "finance", "sales"), ("gateway", "idle", "broken"),
        ("search", "segments", "snapshots"), ("search", "worker", "writer"), ("cache", "session", "query"),
        ("deploy", "billing", "mailing"), ("deploy", "platform", "security"), ("cache", "memory", "disk"),
        ("auth", "access", "refresh"), ("gateway", "header", "cookie"), ("export", "copies", "moves"),
        ("auth", "decided", "doubted"), ("export", "into", "near"), ("gateway", "and doesn't", "or doesn't"),
        ("auth", "expire after 1", "expired after 1"), ("search", "is rebuilt", "was rebuilt"),
        ("search", "lock", "log"), ("export", "archive", "archives-eu"),
    ),
    *edits(
        "added or dropped word", "conflict",
        ("export", "finished ", ""), ("gateway", "public ", ""), ("cache", "session ", ""),
        ("export", "invoices", "paid invoices"), ("deploy", "production", "production clusters"),
        ("search", "readers", "remote readers"), ("auth", "tokens expire after 30", "tokens may expire after 30"),
        ("search", "is rebuilt", "should be rebuilt"), ("auth", "internal ", ""), ("deploy", "direct ", ""),
        ("gateway", "with exponential backoff", "with backoff"), ("cache", "entries before", "entries shortly before"),
    ),
    *edits(
        "small word", "duplicate",
        ("export", "Every night", "Each night"), ("export", "the archive", "an archive"),
        ("export", "the archive", "our archive"), ("export", ", and notifies", ", and also notifies"),
        ("gateway", "The public", "Our public"), ("gateway", "closes", "currently closes"),
        ("cache", "Since", "Indeed, since"), ("search", "because the old", "because those old"),
        ("auth", "decided that access", "decided access"), ("auth", "and every", "and therefore every"),
        ("deploy", "the billing", "this billing"), ("search", "the directory", "that directory"),
        ("cache", "the limit", "this limit"), ("export", "to the ledger", "to the the ledger"),
        ("gateway", "our cluster", "the cluster"), ("export", "ledger, and notifies", "ledger, notifies"),
    ),
    *edits(
        "inflection or spelling", "duplicate",
        ("export", "finance team", "finance teams"), ("cache", "each entry", "each entries"),
        ("search", "a lock", "a locks"), ("export", "copies", "copy"), ("gateway", "requests", "request"),
        ("search", "directory", "directories"), ("search", "index", "indexes"), ("deploy", "reviews", "review"),
        ("deploy", "main branch", "main branches"), ("auth", "authority", "authorities"),
        ("search", "is rebuilt", "are rebuilt"),
        ("gateway", "retries", "retry"), ("export", "invoices", "invoice"), ("gateway", "closes", "close"),
        ("auth", "client", "client's"),
    ),
    *edits(
        "synonym", "duplicate",
        ("gateway", "doesn't", "does not"), ("gateway", "doesn't", "doesnt"), ("gateway", "doesn't", "doesn’t"),
        ("search", "cannot", "can't"), ("search", "cannot", "can not"), ("gateway", "3 times", "three times"),
        ("search", "whenever", "when"), ("export", "finished", "completed"), ("cache", "MB", "megabytes"),
        ("gateway", "30 seconds", "30s"), ("cache", "512 MB", "512MB"), ("cache", "15 minutes", "15 mins"),
        ("export", "Postgres", "PostgreSQL"), ("auth", "1 hour", "one hour"),
        ("auth", "every client", "each client"), ("export", "into the", "in the"),
    ),
    *edits(
        "case, punctuation, quotes, Unicode, space", "duplicate",
        ("cache", "Redis", "redis"), ("cache", "Redis", "“Redis”,"), ("cache", "Redis", "ＲＥＤＩＳ"),
        ("cache", "Redis", "`Redis`"), ("cache", "Redis", "'REDIS'"), ("cache", "Redis", "«Redis»"),
        ("cache", "Redis", "„Redis“"), ("cache", "Redis", "「Redis」"), ("cache", "Redis", "**Redis**"),
        ("cache", "Redis", "Re\u00addis"), ("cache", "Redis", "\u200bRedis\u2060"), ("cache", "Redis", "(Redis)"),
        ("cache", "Redis", "𝐑𝐞𝐝𝐢𝐬"), ("cache", "in Redis", "in\u00a0Redis"), ("cache", "in Redis", "in\n\t Redis"),
        ("cache", "node.", "node"), ("cache", "node.", "node!"), ("cache", "node.", "node …"),
        ("cache", "node.", "node。"),
        ("cache", "memory, and", "memory — and"), ("cache", "memory, and", "memory; and"), ("cache", "15", "１５"),
        ("cache", "reached on", "reached - on"), ("search", "max_retries", "`max_retries`"),
        ("search", "max_retries", "MAX_RETRIES"),
        ("gateway", "doesn't", "doesn`t"), ("gateway", "doesn't", "doesn´t"), ("gateway", "doesn't", "DOESN'T"),
        ("search", "directory", "dire\u200dctory"), ("export", "Postgres", "Postgres™"),
        ("export", "email.", "email..."), ("export", "02:30 UTC", "02:30 UTC,"), ("deploy", "GitHub", "Github"),
        ("deploy", "2024-03-18", "2024‑03‑18"), ("deploy", "2024-03-18", "(2024-03-18)"),
    ),
]  # fmt: skip

PAIRS = [
    *pairs(
        "reversed roles", "conflict",
        ("The scheduler calls the worker", "The worker calls the scheduler"),
        ("Alpha calls Beta", "Beta calls Alpha"),
        ("The limit was raised from 5 to 9", "The limit was raised from 9 to 5"),
        ("Alice reports to Bob", "Bob reports to Alice"),
        ("The gateway trusts the proxy and logs the client", "The gateway trusts the client and logs the proxy"),
        ("Users in Berlin call services in Paris", "Users in Paris call services in Berlin"),
        ("Read replicas and caches are flushed", "Read caches and replicas are flushed"),
        ("Alpha reads from Beta and Gamma writes to Delta", "Alpha reads from Gamma and Beta writes to Delta"),
        ("The server encrypts and compresses each file", "The server compresses and encrypts each file"),
        ("The job writes the file before the ledger", "The job writes the ledger before the file"),
        ("Redis replaced Memcached", "Memcached replaced Redis"),
        ("Redis was replaced by Memcached", "Memcached was replaced by Redis"),
        ("The timeout is 5 seconds and the limit is 9", "The timeout is 9 seconds and the limit is 5"),
        ("Ports 80 and 443 go to Alpha and Beta respectively", "Ports 80 and 443 go to Beta and Alpha respectively"),
        ("Not all nodes restart", "All nodes restart not"),
        ("Only admins may read logs", "Admins may read only logs"),
        ("The cache is not shared but the disk is", "The cache is shared but the disk is not"),
        ("Alice prefers Vim over Emacs", "Alice prefers Emacs over Vim"),
        ("Alpha rather than Beta is used", "Beta rather than Alpha is used"),
        ("If the cache fails the disk is read", "If the disk is read the cache fails"),
        ("Load balancer errors cause client timeouts", "Client timeouts cause load balancer errors"),
        ("The client stops and the server starts", "The server stops and the client starts"),
        ("The daily job copies reports", "The job copies daily reports"),
        ("Alpha stops in March and Beta starts", "Alpha stops and Beta starts in March"),
        ("After login, Alpha and Beta start", "After Alpha, login and Beta start"),
        ("The order is validate, then store", "The order is store, then validate"),
        ("Team A owns the parser, team B owns the lexer", "Team B owns the parser, team A owns the lexer"),
        ("Rows are sorted by name and then by date", "Rows are sorted by date and then by name"),
        ("In March files are signed. Keys are rotated", "Files are signed. Keys are rotated in March"),
        ("The first and second key go to Alpha and Beta", "The first and second key go to Beta and Alpha"),
        ("It shrinks files by compressing and encrypting", "It shrinks files by encrypting and compressing"),
        ("During Alpha, Beta and Gamma in Oslo restart", "During Beta, Alpha and Gamma in Oslo restart"),
        ("As leader Alpha follows Beta", "Alpha follows Beta as leader"),
        ("10 of 12 nodes", "12 of 10 nodes"), ("a > b holds", "b > a holds"), ("a < b holds", "a > b holds"),
        ("retry 5, wait 5", "retry 5, wait"), ("The key signs the token", "The token signs the key"),
    ),
    *pairs(
        "moved phrase", "duplicate",
        ("In 2024 the team chose Postgres for the ledger", "The team chose Postgres for the ledger in 2024"),
        ("In 2024, the team chose Postgres.", "The team chose Postgres in 2024."),
        ("When the token expires, the gateway refuses requests", "The gateway refuses requests when the token expires"),
        ("The gateway refuses requests if the token expired", "If the token expired, the gateway refuses requests"),
        ("Because of the outage the release was moved", "The release was moved because of the outage"),
        ("After each deploy the cache is cleared", "The cache is cleared after each deploy"),
        ("Automatically the index is rebuilt", "The index is rebuilt automatically"),
        ("Files are signed. In production the key is rotated", "Files are signed. The key is rotated in production"),
        ("For large files the client uses chunks", "The client uses chunks for large files"),
        ("To save memory the worker reads in batches", "The worker reads in batches to save memory"),
        ("The team in March chose Redis", "The team chose Redis in March"),
        ("Without a ticket the push is refused", "The push is refused without a ticket"),
        ("On Monday, builds are slow", "Builds are slow on Monday"),
        ("Nightly the job copies invoices", "The job copies invoices nightly"),
    ),
    *pairs(
        "list", "duplicate",
        ("The API returns JSON and YAML", "The API returns YAML and JSON"),
        ("We support Alpha, Beta and Gamma", "We support Gamma, Alpha and Beta"),
        ("We support Alpha, Beta, and Gamma", "We support Beta, Alpha and Gamma"),
        ("It runs on Linux, macOS and Windows.", "It runs on Windows, Linux and macOS."),
        ("Alice and Bob own the parser", "Bob and Alice own the parser"),
        ("Ports 80 and 443 are open", "Ports 443 and 80 are open"),
        ("It is written in Go or Rust", "It is written in Rust or Go"),
        ("The key is shared between the client and the server", "The key is shared between the server and the client"),
        ("The worker reads the queue and the cache", "The worker reads the cache and the queue"),
        ("The service depends on Redis as well as Kafka", "The service depends on Kafka and Redis"),
    ),
    *pairs(
        "re-worded", "duplicate",
        ("It is not safe", "It isn't safe"), ("We do not retry", "We don't retry"),
        ("We won't retry", "We will not retry"),
        ("It waits 5 ms in order to save power", "It waits 5ms to save power"),
        ("A well-known path", "A well known path"), ("The colour of the centre", "The color of the center"),
        ("We utilise the cache", "We use the cache"), ("Serialise it", "Serialize it"),
        ("It is disabled due to the outage", "It is disabled because of the outage"),
        ("The file which is written", "The file written"), ("20 percent of CPU", "20% of CPU"),
        ("the config of the app", "The configuration of the application"), ("the the cat sat", "the cat sat"),
        ("It goes to to disk", "It goes to disk"), ("!!!", "!!!"), ("… wait", "wait"),
    ),
    *pairs(
        "value", "conflict",
        ("...", "!!!"), ("10² rows", "102 rows"), ("x₂ is set", "x2 is set"), ("waits <5 s", "waits >5 s"),
        ("offset -5", "offset 5"), ("costs $5", "costs 5"), ("a != b", "a = b"), ("string[] is read", "string is read"),
        ("v1.2.3 is used", "v1.2.30 is used"), (".5 of it", "5 of it"), ("5% of it", "5 of it"),
        ("C++ is used", "C is used"),
        ("We used Redis", "We use Redis"), ("It can fail", "It must fail"), ("A and B are read", "A or B are read"),
        ("The cache caches rows", "The cache rows"), ("5 5", "5"), ("not not safe", "not safe"),
        ("≤ 5 rows", "≥ 5 rows"), ("no retry", "retry"), ("It never fails", "It fails"),
    ),
]  # fmt: skip
