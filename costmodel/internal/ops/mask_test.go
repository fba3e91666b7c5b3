package ops_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestMask checks the mask of a layer's call, and the bytes that checkpoints and the kernel's
// backward keep of it.
func TestMask(t *testing.T) {
	const b, length, d, heads = 2, 64, 8, 4
	const n = b * length
	op := modelgraph.Attention{Dim: d * heads, Heads: heads, KVHeads: 2, HeadDim: d, Rope: true}
	with := func(f func(*modelgraph.Attention)) modelgraph.Attention {
		o := op
		f(&o)
		return o
	}
	window := func(w int64) modelgraph.Attention { return with(func(o *modelgraph.Attention) { o.Window = w }) }
	for _, c := range []struct {
		name      string
		op        modelgraph.Attention
		attention string
		argument  int64 // bytes of the call's mask
		used      int64 // bytes that checkpoints keep
		windowed  bool
		bias      bool // a mask in the compute type, with repeated keys and values
	}{
		{"causal", op, value.SDPA, 0, 0, false, false},
		{"longer window", window(length + 1), value.SDPA, 0, 0, false, false},
		{"a window just filled", window(length), value.SDPA, n * length, length * length, true, true},
		{"a window passed", window(length / 2), value.SDPA, n * length, length * length, true, true},
		{"two-sided", with(func(o *modelgraph.Attention) { o.Window, o.Bidirectional = 8, true }), value.SDPA, 0, length * length, true, true},
		{"flash", window(8), value.FlashAttention, 0, 0, false, false},
		{"eager", op, value.EagerAttention, 2 * n * length, 2 * n * length, false, false},
		{"eager window", window(8), value.EagerAttention, 2 * n * length, 2 * n * length, true, false},
		{"made eager", with(func(o *modelgraph.Attention) { o.Eager = true }), value.SDPA, 2 * n * length, 2 * n * length, false, false},
	} {
		s := ops.Shape{Tokens: n, Length: length, Batch: b, Cache: length, Precision: costmodel.BF16True, Attention: c.attention}
		plain := ops.Of(c.op, &s)
		s.RotaryCopies = true
		hooked := ops.Of(c.op, &s)
		const rotary = 2 * 2 * length * d
		if got := hooked.Arguments - plain.Arguments - rotary; got != c.argument {
			t.Errorf("%s: called with a mask of %d B, want %d", c.name, got, c.argument)
		}
		if size, windowed := ops.MaskSaved(c.op, &s); size != c.used || windowed != c.windowed {
			t.Errorf("%s: checkpoints hold %d B, of a window %t; want %d, %t", c.name, size, windowed, c.used, c.windowed)
		}
		s.RotaryCopies, s.Train = false, true
		saved := ops.Of(c.op, &s).Memory.Saved
		if c.attention == value.EagerAttention || c.op.Eager {
			continue
		}
		want := int64(2*n*(2*heads*d+2*2*d) + 4*heads*n + 1024) // q, output, k, v, log-sum-exp, seeds
		if c.attention == value.FlashAttention {
			want -= 512 // one tensor of seed and offset
		}
		if c.bias {
			want += 2*n*2*(heads-2)*d + 2*n*length
		}
		if saved != want {
			t.Errorf("%s: %d B are kept for backward, want %d", c.name, saved, want)
		}
	}
	capped := with(func(o *modelgraph.Attention) { o.SoftCap = true })
	for _, c := range []struct {
		attention string
		tanh      int64
	}{{value.SDPA, 0}, {value.FlashAttention, 0}, {value.EagerAttention, 2 * heads * n * length}} {
		s := ops.Shape{Tokens: n, Length: length, Batch: b, Train: true, Precision: costmodel.BF16True, Attention: c.attention}
		if got := ops.Of(capped, &s).Memory.Saved - ops.Of(op, &s).Memory.Saved; got != c.tanh {
			t.Errorf("%s: the cap keeps %d B, want %d", c.attention, got, c.tanh)
		}
	}
}
