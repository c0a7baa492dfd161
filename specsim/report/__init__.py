"""Reports: a run or a sweep in print, as figures, and as one HTML file.

Empty on purpose: a sweep in print needs none of the rich tables that a run's summary does.
"""
