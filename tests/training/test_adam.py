"""One buffer for all replicas against one `torch.optim.Adam` for each."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from attndyn.training.adam import FlatAdam
from attndyn.training.condition import Adam

REPLICAS, STEPS = 3, 50
SHAPES = {"a": (4,), "b": (2, 3)}
CLOSE = {"rtol": 1e-10, "atol": 1e-12}  # everything here is double precision


def make_model(dtype: torch.dtype = torch.float64) -> nn.Module:
    random = torch.Generator().manual_seed(0)
    model = nn.Module()
    for name, shape in SHAPES.items():
        values = torch.randn(REPLICAS, *shape, generator=random, dtype=dtype)
        model.register_parameter(name, nn.Parameter(values))
    return model


def gradients(step: int, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """Of sizes from 1e-4 to 1e2, so that eps and the second moment both matter; zero now and then."""
    random = torch.Generator().manual_seed(100 + step)
    found = {}
    for name, shape in SHAPES.items():
        size = 10 ** (6 * torch.rand(REPLICAS, *shape, generator=random, dtype=dtype) - 4)
        sign = torch.randint(-1, 2, (REPLICAS, *shape), generator=random)
        found[name] = size * sign
    return found


def fill(flat: FlatAdam, model: nn.Module, step: int, dtype: torch.dtype = torch.float64) -> None:
    """A loss with exactly those gradients."""
    products = [(model.get_parameter(name) * gradient).sum() for name, gradient in gradients(step, dtype).items()]
    flat.differentiate(torch.stack(products).sum())


def run_flat(
    spec: Adam, steps: int = STEPS, active: list[bool] | None = None, dtype: torch.dtype = torch.float64
) -> tuple[nn.Module, FlatAdam]:
    model = make_model(dtype)
    flat = FlatAdam(model, spec)
    for step in range(steps):
        fill(flat, model, step, dtype)
        flat.step(torch.tensor(step + 1), torch.tensor(active or [True] * REPLICAS))
    return model, flat


def run_torch(replica: int, moving: set[str], **settings) -> dict[str, Tensor]:
    """The parameters of one replica after training with PyTorch's own optimiser."""
    start = make_model()
    parameters = {name: nn.Parameter(start.get_parameter(name).detach()[replica].clone()) for name in SHAPES}
    optimiser = torch.optim.Adam([parameters[name] for name in sorted(moving)], **settings)
    for step in range(STEPS):
        for name, gradient in gradients(step).items():
            parameters[name].grad = gradient[replica].clone()
        optimiser.step()
    return {name: parameter.detach() for name, parameter in parameters.items()}


def assert_replica(model: nn.Module, replica: int, expected: dict[str, Tensor]) -> None:
    for name, value in expected.items():
        torch.testing.assert_close(model.get_parameter(name).detach()[replica], value, **CLOSE)


@pytest.mark.parametrize(
    ("lr", "decay", "amsgrad"), list(itertools.product([1e-3, 0.1], [0.0, 0.01, 1.0], [False, True]))
)
def test_a_replica_moves_as_under_pytorchs_adam(lr: float, decay: float, amsgrad: bool) -> None:
    model, _ = run_flat(Adam(lr=lr, decay=decay, amsgrad=amsgrad))
    for replica in range(REPLICAS):
        expected = run_torch(replica, set(SHAPES), lr=lr, weight_decay=decay, amsgrad=amsgrad)
        assert_replica(model, replica, expected)


@given(
    lr=st.floats(1e-5, 1.0),
    betas=st.tuples(st.floats(0, 0.99), st.floats(0.5, 0.9999)),
    eps=st.floats(1e-10, 1e-2),
    decay=st.floats(0, 0.5),
    amsgrad=st.booleans(),
)
def test_every_setting_is_pytorchs(
    lr: float, betas: tuple[float, float], eps: float, decay: float, amsgrad: bool
) -> None:
    model, _ = run_flat(Adam(lr=lr, betas=betas, eps=eps, decay=decay, amsgrad=amsgrad))
    expected = run_torch(1, set(SHAPES), lr=lr, betas=betas, eps=eps, weight_decay=decay, amsgrad=amsgrad)
    assert_replica(model, 1, expected)


@pytest.mark.parametrize("amsgrad", [False, True])
def test_each_replica_has_its_own_rate_and_decay(amsgrad: bool) -> None:
    rates, decays = (1e-3, 1e-2, 0.5), (0.0, 0.1, 0.01)
    model, _ = run_flat(Adam(lr=rates, decay=decays, amsgrad=amsgrad))
    for replica, (lr, decay) in enumerate(zip(rates, decays, strict=True)):
        assert_replica(model, replica, run_torch(replica, set(SHAPES), lr=lr, weight_decay=decay, amsgrad=amsgrad))


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_a_frozen_name_does_not_move_in_any_replica(decay: float) -> None:
    model, _ = run_flat(Adam(decay=decay, frozen=("a",)))
    assert torch.equal(model.a, make_model().a)
    for replica in range(REPLICAS):
        assert_replica(model, replica, run_torch(replica, {"b"}, weight_decay=decay))


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_each_replica_may_freeze_its_own_names(decay: float) -> None:
    frozen = ((), ("b",), ("a", "b"))
    model, _ = run_flat(Adam(decay=decay, frozen=frozen))
    start = make_model()
    for replica, names in enumerate(frozen):
        for name in names:
            assert torch.equal(model.get_parameter(name)[replica], start.get_parameter(name)[replica])
        moving = set(SHAPES) - set(names)
        if moving:
            assert_replica(model, replica, run_torch(replica, moving, weight_decay=decay))


@pytest.mark.parametrize("spec", [Adam(), Adam(decay=0.1), Adam(amsgrad=True)], ids=["plain", "decay", "amsgrad"])
def test_an_inactive_replica_stays_and_its_neighbours_do_not_notice(spec: Adam) -> None:
    model, _ = run_flat(spec, active=[True, False, True], dtype=torch.float32)
    every, _ = run_flat(spec, dtype=torch.float32)
    start = make_model(torch.float32)
    for name in SHAPES:
        assert torch.equal(model.get_parameter(name)[1], start.get_parameter(name)[1])
        for replica in (0, 2):
            assert torch.equal(model.get_parameter(name)[replica], every.get_parameter(name)[replica])


def test_a_replica_stopped_for_a_nan_stays_finite() -> None:
    model = make_model()
    flat = FlatAdam(model, Adam(decay=0.1, amsgrad=True))
    for step in range(3):
        fill(flat, model, step)
        before = flat.values.clone()
        if step == 1:
            flat.gradient[1, 0] = torch.nan
        flat.step(torch.tensor(step + 1), torch.tensor([True, step == 0, True]))
        assert flat.values.isfinite().all()
        assert torch.equal(flat.values[1], before[1]) == (step > 0)


def test_the_gradient_is_collected_in_the_buffer() -> None:
    model = make_model()
    flat = FlatAdam(model, Adam())
    flat.differentiate(model.a.sum() + (3 * model.b).sum())
    a, b = flat.views(flat.gradient)
    assert torch.equal(a, torch.ones_like(model.a))
    assert torch.equal(b, torch.full_like(model.b, 3.0))
    flat.differentiate(model.a.sum())  # does not depend on b, and does not add to what was there
    assert torch.equal(a, torch.ones_like(model.a))
    assert torch.equal(b, torch.zeros_like(model.b))


def test_moving_into_the_buffer_changes_no_value() -> None:
    model = make_model()
    FlatAdam(model, Adam())
    for name in SHAPES:
        assert torch.equal(model.get_parameter(name), make_model().get_parameter(name))


@pytest.mark.parametrize("spec", [Adam(), Adam(decay=0.1, amsgrad=True)], ids=["plain", "amsgrad"])
def test_a_state_put_back_continues_bitwise(spec: Adam) -> None:
    whole, _ = run_flat(spec, dtype=torch.float32)
    _, half = run_flat(spec, steps=20, dtype=torch.float32)
    state = {name: value.clone() for name, value in half.state().items()}
    assert ("largest" in state) == spec.amsgrad
    model = make_model(torch.float32)
    flat = FlatAdam(model, spec)
    flat.load(state)
    for step in range(20, STEPS):
        fill(flat, model, step, torch.float32)
        flat.step(torch.tensor(step + 1), torch.tensor([True] * REPLICAS))
    for name in SHAPES:
        assert torch.equal(model.get_parameter(name), whole.get_parameter(name))


def test_a_wrong_number_of_rates_is_refused() -> None:
    with pytest.raises(ValueError, match="2 values for 3 replicas"):
        FlatAdam(make_model(), Adam(lr=(0.1, 0.2)))


def test_an_unknown_frozen_name_is_refused() -> None:
    with pytest.raises(ValueError, match="'c'; there are a, b"):
        FlatAdam(make_model(), Adam(frozen=("c",)))


@pytest.mark.parametrize("frozen", [(("a",),), (("a",), ("b",))], ids=["one row", "two rows"])
def test_a_wrong_number_of_rows_of_frozen_names_is_refused(frozen: tuple[tuple[str, ...], ...]) -> None:
    with pytest.raises(ValueError, match="replicas"):
        FlatAdam(make_model(), Adam(frozen=frozen))


def test_warming_up_is_the_published_schedule() -> None:
    """lr · min(n w^-1.5, n^-.5), against torch's own Adam and scheduler."""
    model, warmup = make_model(), 7
    flat = FlatAdam(model, Adam(lr=0.3, betas=(0.9, 0.98), warmup=warmup))
    twins = {name: nn.Parameter(getattr(make_model(), name).detach()[0].clone()) for name in SHAPES}
    optimiser = torch.optim.Adam(twins.values(), lr=0.3, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda t: min((t + 1) * warmup**-1.5, (t + 1) ** -0.5))
    for step in range(20):
        fill(flat, model, step)
        flat.step(torch.tensor(step + 1), torch.ones(REPLICAS, dtype=torch.bool))
        for name, parameter in twins.items():
            parameter.grad = gradients(step)[name][0]
        optimiser.step()
        schedule.step()
    for name, parameter in twins.items():
        torch.testing.assert_close(getattr(model, name)[0], parameter, **CLOSE)
