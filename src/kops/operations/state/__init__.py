"""An application's state: computed from its topics, compared with its changelogs, repaired."""
