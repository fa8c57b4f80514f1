"""``python -m kops``."""

from kops.cli.main import main

raise SystemExit(main())
