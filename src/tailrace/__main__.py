"""`python -m tailrace`: the command `tailrace`."""

from tailrace.config.command_line import main

main()
