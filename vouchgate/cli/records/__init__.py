"""What an operator asks of the records: whether they hold, what decided, copies of them."""
