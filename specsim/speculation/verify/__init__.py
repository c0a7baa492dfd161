"""Verification rules: one a file, each the statement of a law."""
