"""What to use here: ranked choices, searches by measuring, and errors of predictions."""
