"""What to use here: ranked choices, searches by measuring, and how far predictions are from measurements."""
