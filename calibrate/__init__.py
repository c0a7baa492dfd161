"""Measurements to accelerator profiles: fits with standard errors, and what they do not explain."""
