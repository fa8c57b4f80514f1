"""Record batches (magic 2): taken apart, changed, put together."""
