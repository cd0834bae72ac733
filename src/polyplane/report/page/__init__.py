"""One self-contained page about results: charts, parts and how they become HTML."""
