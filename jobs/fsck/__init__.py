"""fsck: check that what should be true of stored state is, report where not, repair on request.

`kind` says what a check is, the `of_…` files hold the checks, `check` runs them. Everything is
read in short statements of bounded batches, each in a transaction of its own, so that neither
work nor vacuum waits; nothing counts as found before a second look has confirmed it.
"""
