"""`vouchgate.ingest`; this folder is linked into the package."""

if (
    __name__ != "vouchgate.ingest"
):  # two copies of one module have two copies of every enum, which are unequal
    raise ImportError("this package is called vouchgate.ingest; it cannot be imported as " + __name__)
