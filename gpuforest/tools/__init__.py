"""What people use besides the estimators: commands, pictures, reports, clusters."""
