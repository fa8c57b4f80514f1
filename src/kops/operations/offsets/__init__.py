"""``kops offsets``."""
