"""Faults on purpose: real processes, killed and cut off, and a judge that looks at what stayed.

`make chaos` runs it in full; `test_chaos.py` is the short form.
"""
