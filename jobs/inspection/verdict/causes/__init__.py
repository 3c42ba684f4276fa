"""One module per kind of cause; a new one is found by being here."""
