"""Tests of specsim and calibrate."""
