"""What state, changelogs and replays are computed with: Spark, started for a connection; state files; waiting for stable offsets."""
