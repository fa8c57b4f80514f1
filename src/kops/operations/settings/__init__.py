"""Settings of brokers, groups and client metrics: one planner, one mutation."""
