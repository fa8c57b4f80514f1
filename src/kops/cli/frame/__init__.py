"""What all commands share: options, the session, approval and errors."""
