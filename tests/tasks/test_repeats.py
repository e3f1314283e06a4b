"""What stands in the training part and beside it."""

from attndyn.tasks.repeats import repeated


def test_each_kind_is_counted() -> None:
    train = ["a", "b", "b", "c"]
    assert repeated(train, {"test texts": ["b", "b", "x"], "others": ["y"], "valid texts": ["a"]}) == (
        "test texts that stand in the training part too: 2 of 3; "
        "valid texts that stand in the training part too: 1 of 1"
    )
    assert repeated(train, {"test texts": ["x"]}) == ""
