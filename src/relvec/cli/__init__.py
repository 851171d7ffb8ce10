"""The command `relvec`: one file for each command; heavy imports happen inside the commands."""
