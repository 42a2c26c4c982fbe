"""Exchange with others: runs that other tools recorded come in, our own go out as tables."""
