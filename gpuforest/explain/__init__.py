"""What is computed from a grown forest."""
