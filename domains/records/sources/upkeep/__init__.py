"""Operations on sources for curators: add, change, try, pause and pull, and show their state."""
