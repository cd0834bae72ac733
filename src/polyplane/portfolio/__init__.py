"""PolyplaneClassifier: a table of recipes, each tried once, blended and folded into one model."""
