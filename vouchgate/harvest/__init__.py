"""Looking for evidence that nobody cited."""
