"""The files armful writes: their format, and how one replaces another."""
