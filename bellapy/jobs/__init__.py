"""Jobs that are built from seeding and engines; no job knows another."""
