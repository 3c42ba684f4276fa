"""Faults on purpose: real processes are killed and cut off, then what is stored is checked.

`make chaos` runs it in full; `test_chaos.py` is the short form.
"""
