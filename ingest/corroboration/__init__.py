"""What several sources together say of a claim: hits, who is independent of whom, and a decision from the history of a
search. Pure: the same evidence in any order, process and hash seed gives the same answer."""
