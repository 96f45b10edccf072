"""What compiles, keeps and loads kernels."""
