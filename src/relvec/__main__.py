"""`python -m relvec` is the command `relvec`."""

from relvec.cli.app import main

main()
