"""The simulation itself, in simulated time; the only importer of SimPy."""
