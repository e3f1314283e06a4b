"""Reads and replaces attention inside any PyTorch model, without an edit of the model.

While a `Tap` is open, every attention of the model is computed as softmax(scores) · values in plain sight: the weights
can be kept, and a rule can put others in their place. It finds attention in four ways: `nn.MultiheadAttention` and
whatever calls `scaled_dot_product_attention` (a torch function mode sees the calls), Hugging Face models (their
attention registry), the models of attndyn (the rule they take), and modules that the user has registered.
"""

import contextlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from attndyn.errors import UserError
from attndyn.models.base import Model
from attndyn.models.rules import AttentionRule
from attndyn.watching.undisturbed import as_written

MASKED = -1e4
"""Scores this low are masks: models write −∞, the smallest number or −10⁹ where there is nothing to look at."""

SOFTMAX = {torch.softmax, torch.special.softmax, F.softmax, Tensor.softmax}
AXES = ("batch", "head", "query", "key")


class Call(NamedTuple):
    """One attention of one forward pass."""

    weights: Float[Tensor, "batch head query key"]
    mask: Bool[Tensor, "batch head query key"]
    """Where this query may look."""


class Place(NamedTuple):
    """Which attention a rule is asked about."""

    layer: str
    usual: "Rule"
    """What the weights are without this rule: learned, or by the rule of a tap around this one."""
    first_query: int
    """0, except where a module is called once for each query, or where a rule is asked about one query only."""
    head: int | None = None
    """The one head that a rule is asked about; None: all."""


Rule = Callable[[Place, Tensor, Tensor], Tensor]
"""(place, scores [batch, head, query, key], mask of the same shape) -> weights of the same shape."""


class Adapter(NamedTuple):
    axes: tuple[str, ...]
    read: Callable[[nn.Module, Any, Any], Tensor] | None


REGISTERED: dict[type[nn.Module], Adapter] = {}


def register(
    kind: Any,
    axes: str = "batch query key",
    read: Callable[[nn.Module, Any, Any], Tensor] | None = None,
) -> None:
    """Says that modules of this class are attention.

    `axes` names the axes of the weights, out of batch, head, query and key. A module without a query axis may be called
    once for each query. The softmax over the key axis inside the module is the attention, and can be replaced. Where
    there is none (a sparse attention, say), `read(module, inputs, output)` picks the weights, to be read only.
    """
    if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        raise UserError(f"register takes the class of a module, not {kind!r}")
    names = tuple(axes.split())
    if not {"batch", "key"} <= set(names) <= set(AXES) or len(set(names)) < len(names):
        raise UserError(f"axes are batch and key, and head and query where there are some, not {axes!r}")
    REGISTERED[kind] = Adapter(names, read)


def folded(
    rule: AttentionRule, scores: Float[Tensor, "batch head query key"], mask: Bool[Tensor, "batch head query key"]
) -> Float[Tensor, "batch head query key"]:
    """A rule of `models.rules` under a mask that differs between queries: each row is an example of its own."""
    keys = scores.shape[-1]
    return rule(scores.reshape(1, -1, 1, 1, keys), mask.reshape(1, -1, keys)).reshape(scores.shape)


def softmax(
    scores: Float[Tensor, "batch head query key"], mask: Bool[Tensor, "batch head query key"]
) -> Float[Tensor, "batch head query key"]:
    """The rule `Learned` under such a mask, with half the passes over memory."""
    return torch.where(mask, torch.where(mask, scores, torch.finfo(scores.dtype).min).softmax(dim=-1), 0.0)


def open_taps() -> "list[Tap]":
    """The taps that are open now, the innermost last."""
    return _OPEN


_OPEN: "list[Tap]" = []


class Tap(TorchFunctionMode):
    """`with Tap(model) as tap: model(x)` leaves every attention of the pass in `tap.calls`, by the module's name."""

    def __init__(self, model: nn.Module, rule: Rule | None = None, keep: bool = True) -> None:
        super().__init__()
        self.names = {module: name or type(module).__name__ for name, module in model.named_modules()}
        self.root, self.rule, self.keep = model, rule, keep
        self.calls: dict[str, Call] = {}
        self.queries: dict[str, int] = {}
        """How many queries each attention had that ran while the tap was open."""
        self.unread: list[str] = []
        """Modules that take a softmax and are not known as attention."""
        self._queries: dict[str, int] = {}
        self._modules: list[nn.Module] = []
        self.passes = 0
        self._outer: Tap | None = None
        self._busy = False
        self._exit = contextlib.ExitStack()

    def begin(self) -> None:
        """A new forward pass."""
        self.passes += 1
        self.calls.clear()
        self._queries.clear()

    # --- opening and closing

    def __enter__(self) -> "Tap":
        with contextlib.ExitStack() as stack:
            stack.enter_context(_module_hooks(self))
            if "transformers" in sys.modules:
                from attndyn.watching import huggingface

                stack.enter_context(huggingface.switched(self.names))
            stack.enter_context(as_written())
            self._outer = next((tap for tap in reversed(_OPEN) if tap.root is self.root and tap.rule), None)
            _OPEN.append(self)
            stack.callback(_OPEN.remove, self)
            super().__enter__()
            stack.callback(super().__exit__, None, None, None)
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._exit.close()

    def enter(self, module: nn.Module, inputs: Any) -> Any:
        if module not in self.names:
            return None
        if module is self.root:
            self.begin()
        self._modules.append(module)
        if isinstance(module, Model) and len(inputs) == 2 and self._modules == [module]:
            batch, rule = inputs
            return batch, _Tapped(self, self.names[module], rule)
        return None

    def leave(self, module: nn.Module, inputs: Any, output: Any) -> None:
        if module not in self.names or not self._modules or self._modules[-1] is not module:
            return
        adapter = _adapter(module)
        if adapter is not None and adapter.read is not None and output is not None:
            if self.rule is not None:
                raise UserError(
                    f"the attention of {self.names[module]} was registered with read=, so it can be read only"
                )
            weights = _four(adapter.read(module, inputs, output), adapter.axes)
            self._keep(self._name(self.names[module], "query" in adapter.axes), weights, weights > 0)
        self._modules.pop()

    # --- what is intercepted

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self._busy and self._modules:
            if func is F.scaled_dot_product_attention:
                return self._dot_product(self.names[self._modules[-1]], *args, **kwargs)[0]
            if func is F.multi_head_attention_forward:
                return self._multi_head(args, kwargs)
            if func in SOFTMAX:
                return self._softmax(func, args, kwargs)
        return func(*args, **kwargs)

    def attend(
        self,
        name: str,
        scores: Float[Tensor, "batch head query key"],
        mask: Tensor | None,
        learned: AttentionRule | None = None,
        several: bool = True,
    ) -> Float[Tensor, "batch head query key"]:
        """The weights that this attention gets, in at least single precision. `mask` is additive, or True at what
        may be looked at."""
        self._busy = True
        try:
            scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
            if mask is None:
                allowed = scores > MASKED
            elif mask.dtype == torch.bool:
                allowed = mask.expand(scores.shape)
            else:
                allowed, scores = (mask > MASKED).expand(scores.shape), scores + mask
            name = self._name(name, several)
            usual = self._usual(learned)
            place = Place(name, usual, self._queries.get(name, 0))
            weights = (self.rule or usual)(place, scores, allowed)
            self._keep(name, weights, allowed)
        finally:
            self._busy = False
        return weights

    def _usual(self, learned: AttentionRule | None) -> Rule:
        def usual(place: Place, scores: Tensor, mask: Tensor) -> Tensor:
            outer = self._outer
            if outer is None or outer.rule is None:
                return softmax(scores, mask) if learned is None else folded(learned, scores, mask)
            outer.queries[place.layer] = max(outer.queries.get(place.layer, 0), place.first_query + scores.shape[2])
            return outer.rule(place._replace(usual=outer._usual(learned)), scores, mask)

        return usual

    def _name(self, name: str, several: bool) -> str:
        """A module with queries that is called again is another layer, as where layers share their weights."""
        if not several:
            return name
        count = self._queries.get(f"{name} calls", 0) + 1
        self._queries[f"{name} calls"] = count
        return name if count == 1 else f"{name} (call {count})"

    def _keep(self, name: str, weights: Tensor, mask: Tensor) -> None:
        self.queries[name] = self._queries[name] = self._queries.get(name, 0) + weights.shape[2]
        if not self.keep:
            return
        call = Call(weights.detach().float(), mask.detach())
        if name in self.calls:
            call = Call(*(torch.cat(pair, dim=2) for pair in zip(self.calls[name], call, strict=True)))
        self.calls[name] = call

    def _dot_product(
        self,
        name: str,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """`scaled_dot_product_attention`, and its weights."""
        if enable_gqa and query.shape[-3] != key.shape[-3]:
            key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], dim=-3) for x in (key, value))
        scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        if not 2 <= scores.ndim <= 4:
            raise UserError(f"{name} has attention scores of {scores.ndim} axes; two to four can be read")
        missing = {4: (), 3: (1,), 2: (0, 0)}[scores.ndim]
        for axis in missing:
            scores = scores.unsqueeze(axis)
            attn_mask = attn_mask.unsqueeze(axis) if attn_mask is not None and attn_mask.ndim > 2 else attn_mask
        weights = self.attend(name, scores, attn_mask)
        mixed = F.dropout(weights.to(value.dtype), dropout_p) if dropout_p else weights.to(value.dtype)
        for axis in missing:
            mixed = mixed.squeeze(axis)
        return mixed @ value, weights

    def _multi_head(self, args: Any, kwargs: Any) -> tuple[Tensor, Tensor | None]:
        """`multi_head_attention_forward`: it hands projected heads to its own global `scaled_dot_product_attention`
        if no weights are asked for."""
        kept: list[Tensor] = []
        name = self.names[self._modules[-1]]

        def ours(*inner: Any, **named: Any) -> Tensor:
            output, weights = self._dot_product(name, *inner, **named)
            kept.append(weights)
            return output

        original = F.scaled_dot_product_attention
        F.scaled_dot_product_attention = ours
        try:
            output, _ = F.multi_head_attention_forward(*args, **kwargs | {"need_weights": False})
        finally:
            F.scaled_dot_product_attention = original
        if not kwargs.get("need_weights", True):
            return output, None
        weights = kept[0].mean(dim=1) if kwargs.get("average_attn_weights", True) else kept[0]
        return output, weights if args[0].ndim == 3 else weights[0]

    def _softmax(self, func: Any, args: Any, kwargs: Any) -> Tensor:
        for module in reversed(self._modules):
            adapter = _adapter(module)
            if adapter is not None:
                break
        else:
            name = self.names[self._modules[-1]]
            self.unread += [] if name in self.unread else [name]
            return func(*args, **kwargs)
        scores, dim = args[0], kwargs.get("dim", args[1] if len(args) > 1 else None)
        if adapter.read is not None or dim is None or dim % scores.ndim != adapter.axes.index("key"):
            return func(*args, **kwargs)
        if scores.ndim != len(adapter.axes):
            raise UserError(
                f"{type(module).__name__} was registered with the axes {' '.join(adapter.axes)!r}, but its attention "
                f"has the shape {[*scores.shape]}"
            )
        weights = self.attend(self.names[module], _four(scores, adapter.axes), None, several="query" in adapter.axes)
        for axis in sorted((AXES.index(name) for name in AXES if name not in adapter.axes), reverse=True):
            weights = weights.squeeze(axis)
        present = [name for name in AXES if name in adapter.axes]
        return weights.permute([present.index(name) for name in adapter.axes]).to(scores.dtype)


def _four(weights: Tensor, axes: tuple[str, ...]) -> Float[Tensor, "batch head query key"]:
    """Axes in our order; those that are missing have length 1."""
    present = [name for name in AXES if name in axes]
    weights = weights.permute([axes.index(name) for name in present])
    for place, name in enumerate(AXES):
        if name not in axes:
            weights = weights.unsqueeze(place)
    return weights


def _adapter(module: nn.Module) -> Adapter | None:
    return next((REGISTERED[kind] for kind in type(module).__mro__ if kind in REGISTERED), None)


class _Tapped:
    """The rule that a model of attndyn was called with, seen by a tap."""

    def __init__(self, tap: Tap, name: str, rule: AttentionRule) -> None:
        self.tap, self.name, self.rule = tap, name, rule

    def __call__(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        if len(scores) != 1:
            raise UserError("a model with several replicas cannot be watched; build it with one seed")
        allowed = None if mask is None else mask[0, :, None, None]
        return self.tap.attend(self.name, scores[0], allowed, self.rule)[None].to(scores.dtype)


@contextlib.contextmanager
def _module_hooks(tap: Tap) -> Any:
    """Tells the tap which module computes. Global hooks: the model's own tables of hooks stay as they are."""
    from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

    before = register_module_forward_pre_hook(tap.enter)
    after = register_module_forward_hook(tap.leave, always_call=True)
    try:
        yield
    finally:
        before.remove()
        after.remove()
