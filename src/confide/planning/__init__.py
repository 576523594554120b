"""Planning: what a budget buys, before anything is spent; and compiling ahead of time."""
