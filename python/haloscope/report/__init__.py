"""Records and what is made of them: statistics, tables, timelines, figures."""
