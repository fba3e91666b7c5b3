package modelgraph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// weight is a BF16 tensor.
func weight(name string, shape ...int64) modelgraph.Tensor {
	return modelgraph.Tensor{Name: name, Shape: shape, DType: modelgraph.BF16}
}

// TestWeights: what a layer's op says and what its parameters say is one
// thing. An empty want: taken.
func TestWeights(t *testing.T) {
	type tensors = []modelgraph.Tensor
	packed := weight("qweight", 1024, 8192)
	packed.DType = int32Type
	attention := modelgraph.Attention{Dim: 64, Heads: 4, KVHeads: 2, HeadDim: 16}
	cross := attention
	cross.Cross = true
	latent := modelgraph.Attention{Dim: 64, Heads: 4, KVHeads: 4, HeadDim: 24, ValueDim: 16, QRank: 48, KVRank: 32, RopeDim: 8}
	moe := modelgraph.MoE{Dim: 64, Hidden: 48, Experts: 4, TopK: 2}
	shared := moe
	shared.SharedHidden = 32
	mamba := modelgraph.StateSpace{Dim: 64, Inner: 128, State: 16, Kernel: 4, DtRank: 4}
	for _, c := range []struct {
		op     modelgraph.Op
		params tensors
		want   string
	}{
		{modelgraph.Linear{In: 8192, Out: 8192}, tensors{weight("weight", 10, 10)}, `"l": op linear of 8192 → 8192 has weights of 67108864 elements, but with "l.weight" [10 10] there are 100`},
		{modelgraph.Linear{In: 8192, Out: 8192}, nil, `the layer has no params`},
		{modelgraph.Linear{In: 8192, Out: 8192}, tensors{packed}, ""},
		{modelgraph.Linear{In: 3, Out: 5}, tensors{weight("weight", 5, 3), weight("bias", 5)}, ""},
		{modelgraph.Linear{In: 3, Out: 5}, tensors{weight("weight", 3, 5)}, ""}, // Conv1D
		{modelgraph.Linear{In: 3, Out: 5}, tensors{weight("flat", 15)}, ""},     // FSDP1
		{modelgraph.Linear{In: 3, Out: 5}, tensors{weight("weight", 5, 3), weight("bias", 3)}, `5 wide, but "l.bias" is [3]`},
		{modelgraph.Linear{In: 3, Out: 5}, tensors{weight("weight", 5, 3), weight("more", 5, 3)}, "there are 30"},
		{modelgraph.Embedding{Vocab: 7, Dim: 4}, tensors{weight("weight", 7, 4)}, ""},
		{modelgraph.Embedding{Vocab: 7, Dim: 4}, tensors{weight("cls", 1, 1, 4), weight("table", 1, 7, 4)}, ""},
		{modelgraph.Embedding{Vocab: 7, Dim: 4}, tensors{weight("weight", 6, 4)}, "there are 24"},
		{modelgraph.Head{Vocab: 7, Dim: 4}, tensors{weight("weight", 7, 4), weight("bias", 7)}, ""},
		{modelgraph.Head{Vocab: 7, Dim: 4}, tensors{weight("weight", 7, 4), weight("bias", 4)}, `"l.bias" is [4]`},
		{modelgraph.Head{Vocab: 7, Dim: 4}, tensors{weight("weight", 8, 4)}, "there are 32"},
		{modelgraph.Norm{Dim: 4}, tensors{weight("weight", 4), weight("bias", 4)}, ""},
		{modelgraph.Norm{Dim: 4}, nil, ""},
		{modelgraph.Norm{Dim: 4}, tensors{weight("weight", 5)}, `4 wide, but "l.weight" is [5]`},
		{modelgraph.MLP{Dim: 4, Hidden: 10}, tensors{weight("a", 4, 10), weight("b", 10, 4), weight("bias", 10)}, ""},
		{modelgraph.MLP{Dim: 4, Hidden: 10, Gated: true}, tensors{weight("a", 4, 10), weight("b", 10, 4)}, "has weights of 120 elements"},
		{modelgraph.MLP{Dim: 4, Hidden: 10}, tensors{weight("gate_up", 20, 4), weight("down", 4, 10)}, "has weights of 80 elements"},
		{modelgraph.MLP{Dim: 4, Hidden: 10, Gated: true, Fused: true}, tensors{weight("gate_up", 20, 4), weight("down", 4, 10)}, ""},
		{attention, tensors{weight("qkv", 128, 64), weight("o", 64, 64)}, ""},
		{attention, tensors{weight("q", 64, 64), weight("k", 32, 64), weight("v", 32, 64), weight("o", 64, 64), weight("position", 32, 4)}, ""},
		{attention, tensors{weight("q", 64, 64), weight("k", 64, 64), weight("v", 64, 64), weight("o", 64, 64)}, "there are 16384"},
		{attention, tensors{weight("qkv", 128, 64)}, "there are 8192"},
		{cross, tensors{weight("q", 64, 64), weight("k", 32, 96), weight("v", 32, 96), weight("o", 64, 64)}, ""}, // of an encoder 96 wide
		{cross, tensors{weight("q", 64, 64)}, "there are 4096"},
		{latent, tensors{weight("q_a", 48, 64), weight("q_b", 96, 48), weight("kv_a", 40, 64), weight("kv_b", 128, 32), weight("o", 64, 64)}, ""},
		{latent, tensors{weight("q_a", 48, 64), weight("q_b", 96, 48), weight("kv_a", 32, 64), weight("kv_b", 128, 32), weight("o", 64, 64)}, "op attention"},
		{moe, tensors{weight("gate_up", 4, 96, 64), weight("down", 4, 64, 48), weight("gate", 4, 64)}, ""},
		{moe, tensors{weight("gate_up", 4, 96, 64), weight("gate_up_bias", 4, 96), weight("down", 4, 64, 48), weight("down_bias", 4, 64), weight("gate", 4, 64)}, ""},
		{moe, tensors{weight("gate_up", 8, 96, 64), weight("down", 8, 64, 48), weight("gate", 8, 64)}, "op moe of 4 experts"},
		{moe, tensors{weight("gate", 4, 64)}, "there are 256"},
		{shared, tensors{weight("gate_up", 4, 96, 64), weight("down", 4, 64, 48), weight("gate", 4, 64), weight("shared", 96, 64)}, ""},
		{modelgraph.Conv{In: 80, Out: 384, Kernel: 3}, tensors{weight("weight", 384, 80, 3), weight("bias", 384)}, ""},
		{modelgraph.Conv{In: 384, Out: 384, Kernel: 3}, tensors{weight("weight", 384, 1, 3)}, ""}, // a channel each
		{modelgraph.Conv{In: 80, Out: 384, Kernel: 3}, tensors{weight("weight", 384, 80, 5)}, "op conv"},
		{mamba, tensors{weight("A_log", 128, 16), weight("D", 128), weight("conv", 128, 1, 4), weight("in", 256, 64), weight("x", 36, 128), weight("dt", 128, 4), weight("out", 64, 128)}, ""},
		{mamba, tensors{weight("A_log", 128, 16), weight("conv", 128, 1, 4), weight("in", 256, 64), weight("x", 36, 128), weight("dt", 128, 8), weight("out", 64, 128)}, "op state-space"},
		{modelgraph.Opaque{}, tensors{weight("weight", 5, 3)}, ""},
		{modelgraph.MLP{Dim: 1 << 40, Hidden: 1 << 40}, tensors{weight("weight", 5, 3)}, "op mlp"}, // a product that no integer holds
	} {
		_, err := modelgraph.New("m", []modelgraph.Layer{{Name: "l", Op: c.op, Params: c.params}}, nil)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `layers[0]: "l": op `)) {
			t.Errorf("%T %v: %v, want %q", c.op, c.params, err, c.want)
		}
	}
}

// TestDeclaredWeights: bytes that the model file declares count for weights
// that it does not list.
func TestDeclaredWeights(t *testing.T) {
	d := modelgraph.NotDeclared()
	l := modelgraph.Layer{Name: "l", Op: modelgraph.Linear{In: 8192, Out: 8192}, Declared: &d}
	if _, err := modelgraph.New("m", []modelgraph.Layer{l}, nil); err == nil {
		t.Error("a layer with neither is taken")
	}
	d.ParamsBytes = 1 << 27
	if _, err := modelgraph.New("m", []modelgraph.Layer{l}, nil); err != nil {
		t.Error(err)
	}
}

// TestHalfBytes: four-bit elements fill bytes, the last one too.
func TestHalfBytes(t *testing.T) {
	half := typeNamed("F4")
	for n, want := range map[int64]int64{0: 0, 1: 1, 2: 1, 3: 2} {
		tensor, err := modelgraph.NewTensor("t", half, n)
		if err != nil || tensor.Bytes != want {
			t.Errorf("%d elements take %d B, want %d (%v)", n, tensor.Bytes, want, err)
		}
	}
}

// TestTiedUnitsAscend, whatever order the tie names them in.
func TestTiedUnitsAscend(t *testing.T) {
	g, err := modelgraph.New("m", []modelgraph.Layer{
		{Name: "a", Params: []modelgraph.Tensor{weight("w", 4)}},
		{Name: "b", Params: []modelgraph.Tensor{weight("w", 4)}},
		{Name: "c", Params: []modelgraph.Tensor{weight("w", 4)}},
	}, [][]string{{"c.w", "a.w", "b.w"}})
	if err != nil || !slices.Equal(g.TiedUnits()[0], []int{0, 1, 2}) || g.Layers[0].Params[0].Owner != "c.w" {
		t.Errorf("units %v (%v)", g.TiedUnits(), err)
	}
}

// Types of quantised storage.
var int32Type, float8Type = typeNamed("I32"), typeNamed("F8_E4M3")

// typeNamed is a type by the name that safetensors gives it.
func typeNamed(name string) modelgraph.DType {
	dtype, err := modelgraph.ParseDType(name)
	if err != nil {
		panic(err)
	}
	return dtype
}
