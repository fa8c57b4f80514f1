"""ACLs: entries, how they decide, what purposes need, what is wrong with them."""
