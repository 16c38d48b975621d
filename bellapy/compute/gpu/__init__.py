"""What all engines need of GPUs: which there are, who works on them, and the reads they hold."""
