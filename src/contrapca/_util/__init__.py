"""Small helpers that know nothing of contrasts."""
