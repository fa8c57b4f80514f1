"""The means to compute state, changelogs and replays: Spark, started for a connection; state files; waiting for stable offsets."""
