"""The paper and our own choices, experiment by experiment."""
