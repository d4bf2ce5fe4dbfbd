"""Davis 2017 replayed: its model on its printed data, against its printed results."""
