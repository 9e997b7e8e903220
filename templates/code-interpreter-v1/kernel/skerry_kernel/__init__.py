"""What the Python kernel has beside ipykernel: its displays, and output that is sent in pieces."""
