"""click only: one small file a noun; parse, call one operation, render."""
