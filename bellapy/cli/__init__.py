"""The command line: options, sessions around commands, exit codes."""
