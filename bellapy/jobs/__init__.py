"""The jobs of the program, one package each; none imports another."""
