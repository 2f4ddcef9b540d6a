"""How texts, times and addresses are shown: pieces with marks, differences between words, spans of time."""
