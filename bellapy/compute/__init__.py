"""How programs are compiled, spread over threads and GPUs, kept within memory, and stopped."""
