"""Delete what imports no longer need, and repair imports that no job works on."""
