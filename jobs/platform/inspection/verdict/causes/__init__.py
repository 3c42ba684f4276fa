"""One module per kind of cause; all modules in this folder are loaded."""
