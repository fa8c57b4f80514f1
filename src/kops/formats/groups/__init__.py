"""Decodes what group coordinators and assignors write."""
