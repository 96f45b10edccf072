"""What people use beside the library: commands, pictures, reports, clusters."""
