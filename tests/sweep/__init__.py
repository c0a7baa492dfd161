"""Tests of sweeps, sensitivity and comparisons."""
