"""What owners say once for all that comes: of publishers, of claims like one they ruled on, of what rules stored."""
