"""Rules that find where a source says otherwise than a claim, one module a family; `ingest.contradictions.rules`
asks them."""
