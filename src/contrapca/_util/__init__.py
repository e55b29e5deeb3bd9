"""Plain helpers without mathematics; nothing is imported here, so that `contrapca --help` stays quick."""
