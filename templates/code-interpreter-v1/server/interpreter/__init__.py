"""Runs code in Jupyter kernels for HTTP clients."""
