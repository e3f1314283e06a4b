import numpy as np
import pyarrow as pa
import pytest

from attndyn.store.metrics import Metrics, Row, from_parquet, to_parquet, to_table

ROWS = [
    Row("b", 5, 0, "loss", 3.0),
    Row("b", 5, 10, "loss", 1 / 3),
    Row("b", 2, 0, "loss", 4.0),  # replica 2 has no step 10: it diverged
    Row("b", 5, 0, "accuracy", 0.5),
    Row("a", 0, 0, "loss", float("nan")),
]


def test_parquet_gives_back_every_bit() -> None:
    table = from_parquet(to_parquet(ROWS))
    assert table.schema.types == [pa.string(), pa.int64(), pa.int64(), pa.string(), pa.float64()]
    assert repr([Row(**row) for row in table.to_pylist()]) == repr(ROWS)  # repr: NaN is not equal to itself
    assert table["value"].null_count == 0


def test_equal_rows_give_equal_bytes() -> None:
    assert to_parquet(ROWS) == to_parquet(list(ROWS))


def test_no_rows_are_a_table_too() -> None:
    table = from_parquet(to_parquet([]))
    assert table.num_rows == 0
    assert table.column_names == list(Row._fields)
    assert Metrics(table).conditions == []


def test_curves_have_a_row_for_each_replica() -> None:
    curves = Metrics(to_table(ROWS)).curves("b", "loss")
    assert curves.replicas.tolist() == [2, 5]
    assert curves.steps.tolist() == [0, 10]
    np.testing.assert_array_equal(curves.values, [[4.0, np.nan], [3.0, 1 / 3]])


def test_the_order_of_the_rows_does_not_matter() -> None:
    one, other = (Metrics(to_table(rows)).curves("b", "loss") for rows in (ROWS, ROWS[::-1]))
    for part, same in zip(one, other, strict=True):
        np.testing.assert_array_equal(part, same)


def test_the_last_value_and_an_earlier_end() -> None:
    curves = Metrics(to_table(ROWS)).curves("b", "loss")
    np.testing.assert_array_equal(curves.last, [np.nan, 1 / 3])
    for step in (0, 9):
        earlier = curves.until(step)
        assert earlier.steps.tolist() == [0]
        np.testing.assert_array_equal(earlier.last, [4.0, 3.0])
    np.testing.assert_array_equal(curves.until(10).values, curves.values)


def test_conditions_come_in_the_order_of_the_table() -> None:
    metrics = Metrics(to_table(ROWS))
    assert metrics.conditions == ["b", "a"]
    assert "a" in metrics
    assert "c" not in metrics


@pytest.mark.parametrize(("condition", "metric"), [("c", "loss"), ("b", "entropy"), ("a", "accuracy")])
def test_what_was_not_recorded_raises(condition: str, metric: str) -> None:
    with pytest.raises(KeyError, match=f"no '{metric}' was recorded for '{condition}'"):
        Metrics(to_table(ROWS)).curves(condition, metric)
