"""Text models of LIBSVM, LIBLINEAR and BudgetedSVM."""
