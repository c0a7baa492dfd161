"""Small, slow and plain answers that the package is compared with."""
