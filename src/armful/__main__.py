"""`python -m armful`: the command line."""

from armful.cli import main

if __name__ == "__main__":
    main()
