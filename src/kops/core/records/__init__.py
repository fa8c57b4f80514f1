"""Records: models, filters, ranges and line formats."""
