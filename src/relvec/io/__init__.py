"""Files in and out: tables of pairs, vectors, and files that are whole or not there."""
