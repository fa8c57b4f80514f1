"""What group coordinators and assignors write."""
