"""Problems: shards of rows, losses, penalties, and what may be asked of them."""
