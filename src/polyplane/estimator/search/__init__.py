"""How a fit finds settings and planes by itself: candidates, halving, prototypes, compression."""
