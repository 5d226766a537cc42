"""`python -m aromatch` is the command `aromatch`."""

from .cli import main

if __name__ == "__main__":
    main()
