"""Speculative decoding: distributions, draft sources, verification rules, lookahead policies, rounds."""
