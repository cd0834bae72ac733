"""Several trainings of planes whose weighted scores are added up, and the one model they make."""
