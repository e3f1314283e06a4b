"""What the tests of watched runs share."""

import pytest


@pytest.fixture
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes seconds; what stands on the page is tested once."""
    monkeypatch.setattr("attndyn.report.page.build", lambda run, parts, finding, formats: run.path / "report.html")
