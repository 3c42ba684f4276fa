"""The buses that events are sent to, a module for each kind; buses are read in `sources`."""
