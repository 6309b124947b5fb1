"""Many logs at once: found, judged side by side, folded into groups of the same failure."""
