"""The command line, the only user of click: one small file per verb parses, calls one operation and renders."""
