"""Sentences written for the tests of hedge detection: what blocks, what goes to review, what is no hedge."""

from __future__ import annotations

from vouchgate.ingest.claims.hedges import HedgeCategory

SPECULATION, UNCERTAINTY, SUGGESTION, TECHNICAL, ROUGH = HedgeCategory

BLOCK: dict[HedgeCategory, str] = {
    SPECULATION: """
        I think the pool is too small.
        We still think that the lock is taken twice.
        I never thought the proxy was to blame.
        I don't really believe that retries help here.
        I, for one, think the default is wrong.
        I (still) think so.
        I'd think the socket is shared.
        I'd say the time-out is too low.
        I guess somebody needs that flag.
        Id guess it runs twice.
        My best guess is a stale route.
        Best guess: a stale route.
        Speculation: the pool is shared.
        Purely speculative, the cache leaks.
        Our understanding is that the vendor patched it.
        In my humble opinion the table is too wide.
        To me, the second design is clearer.
        The new layout looks wrong to me.
        It seems to us that the parser is right.
        We suspect the firewall.
        I have a hunch it is the disk.
        I got the impression that nobody reads the log.
        I assume the token lives for an hour.
        I'm assuming the port is open.
        I expect the move to take a day.
        We guess that the header is stripped.
        I hope this settles it.
        I wonder whether anyone calls it.
        I doubt that it scales.
        I'm pretty sure it is the kernel.
        Pretty sure it's the kernel.
        I am 90% sure the job runs hourly.
        AFAIK the port is 8080.
        I am a bit worried that the queue overflows.
        IME the second disk is slower.
        The shim is dead code, imho.
        If I recall correctly, the port is 8080.
        As far as we can tell, nobody calls it.
        To the best of my knowledge it is unused.
        I may be wrong, but the flag is gone.
        Unless I'm missing something, this is dead code.
        As I understand it, the key is hashed.
        One would think the lock is freed.
        From my point of view the change is safe.
        Just a guess: the disk is full.
        Guess it's the balancer again.
        I definitely think it is stale, for sure.
        It is certain, I believe, that the key was rotated.
    """,
    UNCERTAINTY: """
        Hard to say whether the index helps.
        Hard to say, but the index helps.
        TBC: the index helps.
        Without having checked, the index helps.
        Any idea why the mirror lags?
        Don't ask me why the port is open.
        I'm not sure about the limit.
        Not sure why this works.
        Not entirely certain, but the hook runs twice.
        We are unsure how the lease is renewed.
        I'm not convinced that it is needed.
        It's not clear whether the flag is read.
        It isn't clear to me why it is read.
        Unclear why the build hangs.
        Why the build hangs is unclear.
        The root cause is still unknown.
        It is not known whether older disks suffer.
        I don't know if it scales.
        I dont know if it scales.
        I don t know if it scales.
        Don't know why, but it works.
        I have no idea what this does.
        No idea why it is there.
        I can't tell whether it is in use.
        I can't remember the port.
        We don't know why the job stalls.
        I haven't tested this on Windows.
        Haven't tried it on ARM.
        I couldn't verify the figure.
        The patch has not been tested on BSD.
        This is untested.
        It remains to be seen whether that helps.
        We haven't decided yet whether to shard.
        It's anyone's guess why it stalls.
    """,
    SUGGESTION: """
        Maybe we should use a queue.
        Perhaps the helper should return early.
        Perhaps it would be better to split it.
        We should probably rename it.
        We might want to cap it.
        You may want to raise the limit.
        Might want to raise the limit.
        We could consider a smaller page.
        How about a smaller page?
        What if we used a queue?
        Why not use a queue?
        Shall we drop it?
        Should this be behind a flag?
        Can we maybe cache it?
        It might be worth adding an index.
        It would be nice to have a test.
        Another option would be a lock.
        I'd suggest moving it to a thread.
        We are thinking about moving to another host.
        Let's maybe cap it at ten.
        Consider adding a second queue.
        Please consider moving it to a thread.
    """,
}

REVIEW: dict[HedgeCategory, str] = {
    TECHNICAL: """
        There is a risk of data loss on the old controller.
        It should not increase the load.
        This shouldn't slow down the build.
        The wrapper felt somewhat hacky.
        The second design feels a bit fragile.
        Probably a student
        The mirror appears offline.
        The switch is for teams that may want to wait.
        If it is slow, you may want to raise the limit.
        The server may stall under load.
        The file may not exist.
        It may not be obvious to the reader.
        May cause a deadlock.
        THE SERVER MAY STALL UNDER LOAD
        It might fail on old disks.
        A slow disk could delay the flush.
        The build will probably fail.
        The likely cause is a race.
        Maybe the disk is full.
        The flag was supposedly removed.
        It's possible that two workers start at once.
        There is no reason the sluice may jam.
        No more than two boats may wait there.
        Nothing may happen for an hour.
        There is a chance that it fails.
        Requests usually take a second.
        Writers often hold the lock.
        In most cases the cache is warm.
        It tends to leak.
        As a rule, builds pass.
        The disk seems full.
        It appears that the flag is unused.
        The parser appears to be broken.
        Looks like a race.
        Hopefully this is the last one.
        This should work on old disks.
        It should now be fast enough.
        This should make the second run faster.
        That should not be a problem.
        The API is kind of slow.
        It is widely believed that the town is older.
        The cache "is probably" stale.
    """,
    ROUGH: """
        It takes about five minutes.
        There are around 30 users.
        Roughly half of the calls fail.
        It uses approximately 2 GB.
        It took almost an hour.
        Nearly 40% of the keys expire.
        It saves ~12 ms a call.
        It takes 10 minutes or so.
        There are some 4,000 rows.
        It has 50-odd users.
        It weighs ca. 30 kg.
    """,
}

CONTINUE: dict[str, str] = {
    "code": """
        The `probably` crate was dropped.
        Use maybe_add() to add a row.
        A missing row gives `Maybe Row`.
        The lookup gives Maybe when the row is missing.
        A call of likely(hit) marks the branch.
        The tool guess-encoding has a new home.
        Best guess encoding is used by the parser.
        Junk is a repeat, speculation, or a token.
        Speculative execution is off.
        TBC Bank is a customer.
        Without having paid, guests cannot enter.
        Pass --maybe to turn it on.
        Read ~/.config/probably and HEAD~3.
        See https://example.org/maybe/i-think for the list.
        The file src/perhaps/main.c is empty.
        Set MAYBE=1 and `I think` is the label.
        The mask is ~0.
    """,
    "months and names": """
        The bridge was opened in May 1987.
        In may 1987 the bridge was opened.
        The ferry runs from May to September.
        May 1987 saw three openings.
        Since May the job is gone.
        Imelda May sang the anthem.
        In May, the job was removed.
    """,
    "words of others": """
        Ana's reaction: "I don't remember!"
        The reviewer's feedback was 'I got the key but I don't know what to do with it'.
        User said: "I think we should go with the blue one"
        Ben told the team, "I suspect the proxy."
        According to Ben, "we might want to wait".
        Feedback from Ana: "I guess it is fine".
        "I am not sure it scales," said Cem.
        "I am not sure it scales", Cem wrote in the review.
        In Ana's words, "I believe in tests".
        Their exact answer: "maybe we should wait".
    """,
    "surety and bounds": """
        We are sure that the second disk is empty.
        After we are reasonably certain that nobody reads it, the table goes.
        Once we're sure that the index is used, the old one is dropped.
        Uploads may be at most 25 MB.
        A name may have up to 40 characters.
        Users may upload at most five files.
        A guest may stay up to 30 days.
        A user can choose to appear offline.
        The labels appear correctly in both views.
        You should be very careful with this flag.
        Reviewers consider adding tests a part of the change.
        Consider the pump closed.
        Prices are left to be decided by each shop.
        The sailors had no idea what to call the bay.
        The survey is important to our understanding of the tides.
        The book is a mystery and a love story.
    """,
    "quoted literals": """
        The warning 'perhaps a worn belt' comes from the lathe.
        The message "I think so" is printed at start.
        The column holds "maybe", "yes" or "no".
        The answer "I don't know" was chosen 12 times.
        Rename 'maybe_free' to "perhaps" in the enum.
    """,
    "requirements": """
        Session keys may not be printed.
        Visitors may not feed the animals.
        The method may only be called once.
        Nobody may skip the safety briefing.
        No diver may enter the lock alone.
        None of the keepers may feed the seals.
        Only the harbour master may open the sluice.
        Guest names may never be logged.
        Clients MAY retry and servers SHOULD answer.
        The queue depth should be 12.
        The level should be set to 3.
        Callers should close the file.
        The path should not contain spaces.
        This should never return NULL.
        It should have been removed in 2.0.
    """,
    "programs": """
        The parser assumes that the input is sorted.
        The compiler believes the pointer is valid.
        We assume that the path is absolute.
        We guess the encoding from the first bytes.
        The server does not know the key of the client.
        If we don't know the type, the entry is skipped.
        If you are unsure where a type belongs, begin with it in the core.
        If it is unclear whether a job ran, it is run again.
        If unsure where a type belongs, begin with it in the core.
        We do not know the length in advance.
        Git thinks the file is unchanged.
    """,
    "facts": """
        The pump couldn't start because the valve was shut.
        Nobody could open the vault.
        No one could read the tape.
        There is no risk of a second run.
        We could not find the file.
        We could reproduce it on two hosts.
        It is possible to rename a branch.
        This makes it possible to use a proxy.
        That is impossible here.
        I measured 30 ms.
        I tested it on Windows.
        I thought about it and added a test.
        We figured out the cause.
        We decided to use a queue.
        I prefer tabs over spaces.
        Make sure the port is open.
        There is no doubt about the result.
        It was definitely fixed in 2.1.
        An unknown token raises an error.
        Unclear error messages were rewritten.
        The might of the old fleet was 40 ships.
        The usual gate is the north one.
        It runs more often than needed.
        The process exits normally.
        The error appears in the log twice.
        The output looks like this:
        This kind of lock is reentrant.
        Some 404 errors were logged.
    """,
    "prepositions": """
        The page is about cats.
        The walk goes around the lake.
        It works around a bug.
        The counter wraps around at 4096.
        The docs complain about 3 missing files.
        It was about to close.
    """,
    "cue letters inside other words": """
        The roundabout was rebuilt.
        The guesswork table has two rows.
        The turnaround is on track 4.
        The dismay was general.
    """,
}


def rows(table: str) -> list[str]:
    """The sentences of a table, one a line."""
    return [line.strip() for line in table.strip().splitlines()]


HEDGED = [text for table in (*BLOCK.values(), *REVIEW.values()) for text in rows(table)]
