"""The steps of publish: validate the events, trace the call, send the signal."""
