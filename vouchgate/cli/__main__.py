"""`python -m vouchgate.cli` is the same program as `vouchgate`."""

from vouchgate.cli import main

if __name__ == "__main__":
    main()
