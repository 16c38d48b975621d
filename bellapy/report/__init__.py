"""What the user sees while a command runs, and what it leaves as a report."""
