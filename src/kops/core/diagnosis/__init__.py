"""What `kops diagnose` finds, from facts about groups, applications, topics and connectors."""
