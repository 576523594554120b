"""What parties agree on about columns: the schema and its file, the encoding of rows, and the one reader of tables."""
