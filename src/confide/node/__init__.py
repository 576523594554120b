"""A party that runs by itself."""
