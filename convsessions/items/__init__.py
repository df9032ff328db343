"""Items as data: validation, sanitising, encoding, chunking and comparison. Pure functions, no database, no network."""
