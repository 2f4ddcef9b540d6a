"""What auditors see, decided: claims from first to last, who ruled how."""
