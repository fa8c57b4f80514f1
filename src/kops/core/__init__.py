"""Pure and standard library only: models, offset arithmetic, time grammar, plans, errors."""
