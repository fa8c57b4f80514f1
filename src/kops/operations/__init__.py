"""Use cases: plan_x() -> Plan and a Mutation that applies it. No printing, no click, no exit."""
