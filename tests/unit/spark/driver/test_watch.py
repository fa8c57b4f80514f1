"""What tasks tell while they work, and what of it shows."""

import threading

from kops.spark.driver.watch import HELD, any_held, records_reported, watching
from support.patience import HANG_SECONDS


class Shown:
    def __init__(self):
        self.units, self.enough = [], threading.Event()

    def step(self, text):
        pass

    def advance(self, done, total, unit):
        self.units.append((done, total, unit))
        self.enough.set()


def test_counts_are_added_up_and_a_quota_is_told(tmp_path):
    folder = str(tmp_path)
    assert (records_reported(folder), any_held(folder)) == (0, False)
    (tmp_path / "0").write_text("20 ")
    (tmp_path / "1").write_text("")  # in the middle of being written
    assert (records_reported(folder), any_held(folder)) == (20, False)
    (tmp_path / "1").write_text(f"3 {HELD}")
    assert (records_reported(folder), any_held(folder)) == (23, True)
    shown = Shown()
    with watching(shown, lambda: records_reported(folder), 40, "records", held=lambda: any_held(folder)):
        assert shown.enough.wait(HANG_SECONDS)
    assert shown.units[0] == (23, 40, "records (slowed down by a quota)")
