"""The buses to which events are sent, one module for each kind. `sources` reads from buses."""
