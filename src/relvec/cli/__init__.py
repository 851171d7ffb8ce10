"""The command `relvec`: one file a command, or a few that share their code; heavy imports happen inside them."""
