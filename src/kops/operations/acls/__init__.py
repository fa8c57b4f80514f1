"""ACLs: listed, explained, audited, exported and changed."""
