"""Lookahead policies: how many tokens to draft, one rule a file."""
