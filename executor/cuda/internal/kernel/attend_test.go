//go:build cuda && linux && cgo && amd64

package kernel

import (
	"reflect"
	"testing"

	"github.com/devmap-dev/devmap/executor/cuda/internal/attention"
	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// lay adds a matrix at an address, rows a stride apart.
func (testCall *testCall) lay(operand string, address driver.Address, rows, columns, stride int64, dtype modelgraph.DType) *testCall {
	testCall.add(operand, rows, columns, dtype)
	last := &testCall.call.Operands[len(testCall.call.Operands)-1]
	last.Address, last.Stride = address, stride
	return testCall
}

const gpt = "sequences=2 heads=8 kv=2 dim=64 seq=100 causal=1 window=30 scale=0.125 cap=50"

// fused is attention over parts of one tensor of 8 + 2 + 2 heads.
func fused(name, dims string) *testCall {
	bf16 := modelgraph.BF16
	return newTestCall(name, dims, false).lay("q", 0x1000, 200, 512, 768, bf16).lay("k", 0x1400, 200, 128, 768, bf16).lay("v", 0x1500, 200, 128, 768, bf16)
}

// TestAttentionArguments: the arguments of attention's kernels, in the order that
// their PTX has them in, and the blocks of their launches.
func TestAttentionArguments(t *testing.T) {
	table := fixtures.Must(attention.Load())(t)
	bf16, f32 := modelgraph.BF16, modelgraph.F32
	dims := func(arguments *driver.Arguments) {
		arguments.Int32(100).Int32(8).Int32(4).Int32(64).Int32(1).Int32(30).Float32(0.125).Float32(50).Address(0).Address(0)
	}
	plain, train, infer, dkv, dq := new(driver.Arguments), new(driver.Arguments), new(driver.Arguments), new(driver.Arguments), new(driver.Arguments)
	maps := func(arguments *driver.Arguments, count int) *driver.Arguments {
		for range count {
			arguments.ReserveTiles()
		}
		return arguments
	}
	dims(train.Address(0x1000).Address(0x1400).Address(0x1500).Address(0x9000).Address(0xa000).Int32(768).Int32(768).Int32(768).Int32(512))
	maps(plain, 3).Address(0x9000).Address(0).Int32(512).Int32(100).Int32(8).Int32(4).Int32(1).Int32(0).Float32(0.5).Int32(16)
	infer.Address(0x1000).Address(0x1400).Address(0x1500).Address(0x9000).Address(0).Int32(768).Int32(768).Int32(768).Int32(512)
	infer.Int32(100).Int32(8).Int32(4).Int32(64).Int32(0).Int32(0).Float32(0.5).Float32(0).Address(0).Address(0)
	gradients := func(arguments *driver.Arguments, splits int32) {
		arguments.Int32(768).Int32(768).Int32(768).Int32(512).Int32(900).Int32(901)
		arguments.Int32(100).Int32(8).Int32(4).Int32(64).Int32(splits).Int32(1).Int32(30).Float32(0.125).Float32(50).Address(0).Address(0)
	}
	gradients(dkv.Address(0x1000).Address(0x1400).Address(0x1500).Address(0x9000).Address(0xa000).Address(0xb000).Address(0xc400).Address(0xc500).Address(0), 1)
	dims(dq.Address(0x1000).Address(0x1400).Address(0x1500).Address(0x9000).Address(0xa000).Address(0xb000).Address(0xc000).Int32(768).Int32(768).Int32(768).Int32(512).Int32(904))
	back := func(dims string, dk int64) *testCall {
		call := fused("attention_backward", dims).lay("dy", 0x9000, 200, 512, 512, bf16).lay("lse", 0xa000, 200, 8, 8, f32).lay("delta", 0xb000, 200, 8, 8, f32)
		return call.lay(">dq", 0xc000, 200, 512, 904, bf16).lay(">dk", 0xc400, 200, 128, dk, bf16).lay(">dv", 0xc500, 200, 128, 901, bf16)
	}
	type launched struct {
		file      string
		blocks    uint32
		arguments *driver.Arguments
	}
	// With room for them in the workspace, the four heads that share keys are apart.
	split, join := new(driver.Arguments), new(driver.Arguments)
	gradients(split.Address(0x1000).Address(0x1400).Address(0x1500).Address(0x9000).Address(0xa000).Address(0xb000).Address(0xc400).Address(0xc500).Address(0x100000), 4)
	join.Address(0x100000).Address(0xc400).Address(0xc500).Int32(900).Int32(901).Int32(200).Int32(128).Int32(4).Address(0).Address(0)
	roomy := back(gpt, 900)
	roomy.call.Workspace = blas.Workspace{Address: 0x100000, Bytes: 4 * 2 * 4 * 200 * 128}
	// A kernel that meets each pair once has a place for its sums; 16 blocks of queries count their shares.
	once := new(driver.Arguments)
	maps(once, 4).Address(0xa000).Address(0xb000).Address(0xc000).Address(0xc400).Address(0xc500).Address(0).Address(0x200000).Int32(904).Int32(904).Int32(904)
	once.Int32(100).Int32(8).Int32(4).Int32(1).Int32(1).Int32(0).Float32(0.5).Int32(16)
	summed := back("sequences=2 heads=8 kv=2 dim=64 seq=100 causal=1 scale=0.5", 904).lay(">sums", 0x200000, 16, 8193, 8193, f32)
	summed.call.Operands[8].Stride = 904
	many := fused("attention", "sequences=2 heads=8 kv=2 dim=64 seq=100 causal=1 scale=0.5").lay(">y", 0x9000, 200, 512, 512, bf16)
	for _, trial := range []struct {
		testCall *testCall
		hopper   bool
		want     []launched
	}{
		{fused("attention", gpt).lay(">y", 0x9000, 200, 512, 512, bf16).lay(">lse", 0xa000, 200, 8, 8, f32), true, []launched{{"attention.bf16.64.exact.sm_80.ptx", 1 * 8 * 2, train}}},
		{many, true, []launched{{"attention.bf16.64.short.sm_90a.ptx", 12, plain}}},
		{fused("attention", "sequences=2 heads=8 kv=2 dim=64 seq=100 scale=0.5").lay(">y", 0x9000, 200, 512, 512, bf16), false, []launched{{"attention.bf16.64.exact.sm_80.ptx", 1 * 8 * 2, infer}}},
		{back(gpt, 900), true, []launched{{"attention_dkv.bf16.64.any.sm_80.ptx", 4 * 2 * 2, dkv}, {"attention_dq.bf16.64.any.sm_80.ptx", 4 * 8 * 2, dq}}},
		{roomy, true, []launched{{"attention_dkv.bf16.64.any.sm_80.ptx", 4 * 2 * 2 * 4, split}, {"attention_dkv_join.bf16.256.any.sm_80.ptx", 25, join}, {"attention_dq.bf16.64.any.sm_80.ptx", 4 * 8 * 2, dq}}},
		{summed, true, []launched{{"attention_backward.bf16.64.plain.sm_90a.ptx", 4, once}}},
	} {
		all, err := attendance(table, trial.testCall.call, trial.hopper, 12)
		if err != nil || len(all) != len(trial.want) {
			t.Errorf("%d launches, %v, want %d", len(all), err, len(trial.want))
			continue
		}
		for i, made := range all {
			want := trial.want[i]
			if made.kernel.File != want.file || made.shape.Grid != [3]uint32{want.blocks, 1, 1} || made.shape.Shared != int(made.kernel.Shared) || made.shape.Block[0] != made.kernel.Threads {
				t.Errorf("%s in %+v, want %s in %d blocks", made.kernel.File, made.shape, want.file, want.blocks)
			}
			if !reflect.DeepEqual(&made.arguments, want.arguments) {
				t.Errorf("%s: arguments\n%x, want\n%x", want.file, made.arguments, *want.arguments)
			}
			if want.arguments == once && (made.cleared != 4*16 || made.clears != 0x200000+4*16*8192) {
				t.Errorf("%d bytes at %x become 0", made.cleared, made.clears)
			}
			if want.arguments == once && !reflect.DeepEqual(made.tiles[128], &driver.Tiles{At: 0x1400, Width: 64, Heads: 2, Rows: 100, Sequences: 2, Stride: 768, Box: 128}) {
				t.Errorf("k is described as %+v", made.tiles[128])
			}
		}
	}
}

// TestAttentionReach: a window lets a query of a long sequence see few keys, and a soft cap keeps
// Triton's kernel.
func TestAttentionReach(t *testing.T) {
	t.Parallel()
	table := fixtures.Must(attention.Load())(t)
	for dims, want := range map[string]string{
		"seq=4096":                      "plain",
		"seq=4096 window=0":             "plain",
		"seq=4096 window=128":           "short",
		"seq=100 window=4096":           "short",
		"seq=4096 window=128 cap=50":    "exact",
		"seq=4096 window=4096 causal=1": "plain",
	} {
		call := fused("attention", "sequences=1 heads=8 kv=2 dim=64 "+dims).lay(">y", 0x9000, 200, 512, 512, modelgraph.BF16).call
		all := fixtures.Must(attendance(table, call, true, 132))(t)
		if form := all[0].kernel.Form; form != want {
			t.Errorf("%s: %s, want %s", dims, form, want)
		}
	}
}

// TestAttentionRefuses: a call that no kernel takes is a defect, and the error says so.
func TestAttentionRefuses(t *testing.T) {
	table := fixtures.Must(attention.Load())(t)
	bf16, f32 := modelgraph.BF16, modelgraph.F32
	summed := func(rows, columns int64) *testCall {
		call := fused("attention_backward", "sequences=2 heads=8 kv=2 dim=64 seq=100 scale=0.5").lay("dy", 0x9000, 200, 512, 512, bf16).lay("lse", 0xa000, 200, 8, 8, f32).lay("delta", 0xb000, 200, 8, 8, f32)
		return call.lay(">dq", 0xc000, 200, 512, 512, bf16).lay(">dk", 0xc400, 200, 128, 128, bf16).lay(">dv", 0xc500, 200, 128, 128, bf16).lay(">sums", 0x200000, rows, columns, columns, f32)
	}
	for want, testCall := range map[string]*testCall{
		`it has no operand "y"`:                         fused("attention", gpt),
		"heads=8 kv=3 seq=4 is no attention":            fused("attention", "heads=8 kv=3 seq=4"),
		"y is 200 × 512 of F32":                         fused("attention", gpt).lay(">y", 0x9000, 200, 512, 512, f32),
		"lse is 200 × 8 of F32, rows 9 apart":           fused("attention", gpt).lay(">y", 0x9000, 200, 512, 512, bf16).lay(">lse", 0xa000, 200, 8, 9, f32),
		"delta is 200 × 8 of BF16, rows 8 apart":        fused("attention_backward", gpt).lay("delta", 0xa000, 200, 8, 8, bf16),
		`it has no operand "lse"`:                       fused("attention_backward", gpt).lay("dy", 0x9000, 200, 512, 512, bf16),
		"q_stride=4294967296 does not fit into 32 bits": newTestCall("attention", gpt, false).lay("q", 0, 200, 512, 1<<32, bf16).lay("k", 0, 200, 128, 128, bf16).lay("v", 0, 200, 128, 128, bf16).lay(">y", 0, 200, 512, 512, bf16),
		"sums is 16 × 6145 of F32, and attention_backward.bf16.64.plain.sm_90a.ptx has blocks of 128 queries": summed(16, 6145),
		"sums is 32 × 8193 of F32, and attention_backward.bf16.64.plain.sm_90a.ptx has blocks of 128 queries": summed(32, 8193),
		"there is no attention for heads of 300 values of bf16":                                               fused("attention", "heads=8 kv=2 dim=300 seq=4"),
	} {
		if _, err := attendance(table, testCall.call, true, 12); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
