"""The audit of a file that does not fit one machine: by parts, on the workers of a Dask cluster (ADR-0059)."""
