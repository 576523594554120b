"""`python -m confide` is `confide`."""

from confide.cli import main

if __name__ == "__main__":
    main()
