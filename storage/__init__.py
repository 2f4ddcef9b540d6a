"""`vouchgate.storage`; this folder is linked into the package."""

if (
    __name__ != "vouchgate.storage"
):  # two copies of one module have two copies of every enum, which are unequal
    raise ImportError("this package is called vouchgate.storage; it cannot be imported as " + __name__)
