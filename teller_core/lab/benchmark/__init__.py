"""The benchmark: lives of servers, recorded, packed, cut into episodes, and the truth about each beside it."""
