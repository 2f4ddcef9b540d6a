"""What of a database lies in files: whose they are, whether they are still the same, whether they can be written, and
copies of them."""
