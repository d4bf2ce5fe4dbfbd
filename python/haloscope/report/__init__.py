"""Records, and statistics, tables, timelines and figures made from them."""
