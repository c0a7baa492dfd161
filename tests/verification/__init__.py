"""Verification rules proved, and wrong ones found out."""
