"""`relvec serve`: an API for programs and a page for people."""
