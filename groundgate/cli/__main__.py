"""`python -m groundgate.cli` is the same program as `groundgate`."""

from groundgate.cli import main

if __name__ == "__main__":
    main()
