"""The one judgement of computed stores, and what it reads to make it."""
