"""Folders of documents that the operator named: read and searched where they lie, and never left."""
