package recipetest_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestGradients: what the kernels of backward make is how the loss that those
// of forward make changes, in float64, in every family that is trained, with
// and without recompute. Tied uses' gradients are summed.
func TestGradients(t *testing.T) {
	for _, family := range slices.Sorted(maps.Keys(backendtest.Families)) {
		if backendtest.Forwards(family) || family == "gemma3" {
			continue // not trained; gemma3_text after a tower
		}
		t.Run(family, func(t *testing.T) {
			gradients(t, built(t)(backendtest.Graph(backendtest.Families[family])), costmodel.Workload{})
		})
	}
	for _, family := range []string{"qwen3", "gpt2"} {
		t.Run(family+" recomputed", func(t *testing.T) {
			gradients(t, built(t)(backendtest.Graph(backendtest.Families[family])), costmodel.Workload{Recompute: costmodel.RecomputeFull})
		})
	}
	for _, precision := range []costmodel.Precision{costmodel.FP32True, costmodel.BF16True} {
		t.Run("a head in parts, "+string(precision), func(t *testing.T) {
			builder := modelgraph.Builder{Name: "m", DType: modelgraph.BF16, Bias: true}
			stream := builder.Add("embed", modelgraph.Embedding{Vocab: 16, Dim: 8})
			stream = builder.Add("norm", modelgraph.Norm{Dim: 8, Epsilon: 1e-5}, stream)
			builder.Add("head", modelgraph.Head{Dim: 8, Vocab: 8300, SoftCap: true, LogitCap: 30}, stream)
			gradients(t, built(t)(builder.Build()), costmodel.Workload{Precision: precision})
		})
	}
	random := rand.New(rand.NewPCG(11, 4))
	for i := range 12 {
		t.Run(fmt.Sprint("drawn ", i), func(t *testing.T) { gradients(t, built(t)(backendtest.RandomChain(random)), costmodel.Workload{}) })
	}
}

// built is a graph that is there.
func built(t *testing.T) func(*modelgraph.Graph, error) *modelgraph.Graph {
	t.Helper()
	return func(graph *modelgraph.Graph, err error) *modelgraph.Graph {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return graph
	}
}

func gradients(t *testing.T, graph *modelgraph.Graph, workload costmodel.Workload) {
	t.Helper()
	workload.Mode, workload.Optimizer, workload.Precision = costmodel.Train, costmodel.SGD, cmp.Or(workload.Precision, costmodel.FP32True)
	workload.Batch, workload.MicroBatches, workload.Seq = 2, 1, 5
	random := rand.New(rand.NewPCG(11, 5))
	m := newMachine(t, graph, &workload, random)
	ids := make([]float64, workload.Batch*workload.Seq)
	for i := range ids {
		ids[i] = float64(random.IntN(7))
	}
	m.forward(&workload, ids)
	m.backward(&workload)
	for u := range m.model.Units {
		unit := &m.model.Units[u]
		for i, tensor := range unit.Code.Tensors {
			if tensor.Class != "weight" || tensor.Tie >= 0 || unit.Passes {
				continue
			}
			name := modelgraph.FullName(unit.Name, tensor.Name)
			gradient := m.gradientOf(u, tensor.Name, name)
			at := random.IntN(len(gradient))
			if got, want := gradient[at], m.slope(&workload, ids, &m.values[u][i][at]); math.Abs(got-want) > 1e-5*max(0.05, math.Abs(want)) {
				t.Errorf("%s[%d]: gradient %.9g, and the loss changes by %.9g", name, at, got, want)
			}
		}
	}
}

// gradientOf is that of all uses of a weight.
func (m *machine) gradientOf(unit int, name, full string) []float64 {
	var sum []float64
	for i, tensor := range m.model.Units[unit].Code.Tensors {
		if tensor.Class == "gradient" && tensor.Name == name+".gradient" {
			sum = slices.Clone(m.values[unit][i])
		}
	}
	for u := range m.model.Units {
		other := &m.model.Units[u]
		for _, tensor := range other.Code.Tensors {
			if tensor.Class != "weight" || tensor.Tie < 0 || other.Tied[tensor.Tie].Tensor != full {
				continue
			}
			for j, use := range other.Code.Tensors {
				if use.Class == "gradient" && use.Name == tensor.Name+".gradient" {
					for k := range sum {
						sum[k] += m.values[u][j][k]
					}
				}
			}
		}
	}
	return sum
}

// slope is by how much the loss changes with a weight.
func (m *machine) slope(workload *costmodel.Workload, ids []float64, weight *float64) float64 {
	const h = 1e-4
	value := *weight
	*weight = value + h
	above := m.forward(workload, ids)
	*weight = value - h
	below := m.forward(workload, ids)
	*weight = value
	return (above - below) / (2 * h)
}

// TestDecodes: the logits of a token that is decoded from the cache are those
// of one forward over all tokens before it.
func TestDecodes(t *testing.T) {
	for _, family := range slices.Sorted(maps.Keys(backendtest.Families)) {
		if !backendtest.Forwards(family) {
			t.Run(family, func(t *testing.T) { decodes(t, built(t)(backendtest.Graph(backendtest.Families[family])), 6, 5) })
		}
	}
	t.Run("long", func(t *testing.T) { decodes(t, built(t)(backendtest.Graph(backendtest.Families["llama"])), 511, 3) }) // a second span
}

func decodes(t *testing.T, graph *modelgraph.Graph, seq, fresh int64) {
	t.Helper()
	workload := costmodel.Workload{Mode: costmodel.Infer, Batch: 2, MicroBatches: 1, Seq: seq, NewTokens: fresh, Precision: costmodel.BF16True}
	random := func() *rand.Rand { return rand.New(rand.NewPCG(11, 6)) }
	m := newMachine(t, graph, &workload, random())
	last := len(m.model.Units) - 1
	ids := make([]float64, workload.Batch*seq)
	for i := range ids {
		ids[i] = float64(i * i % 7)
	}
	m.forward(&workload, ids)
	all := [][]float64{ids[:seq], ids[seq:]}
	for m.step = range fresh {
		var next []float64
		for i, tensor := range m.model.Units[last].Code.Tensors {
			if tensor.Name == "ids" {
				next = m.values[last][i]
			}
		}
		for i := range all {
			all[i] = append(slices.Clone(all[i]), next[i])
		}
		for u := range m.model.Units {
			m.set(u, "token", "", next)
		}
		m.stream(func(_ int, code *recipe.Code) []recipe.Kernel { return code.Decode.Kernels }, workload.Batch)
		if seq > 100 && m.step > 1 {
			continue
		}
		whole := workload
		whole.NewTokens, whole.Seq = 0, seq+m.step+1
		other := newMachine(t, graph, &whole, random())
		other.forward(&whole, slices.Concat(all...))
		got, want := m.get(last, "result", workload.Batch), other.get(last, "result", whole.Batch*whole.Seq)
		columns := int64(len(got)) / workload.Batch
		for i := range workload.Batch {
			row := want[((i+1)*whole.Seq-1)*columns:][:columns]
			for j := range columns {
				if math.Abs(got[i*columns+j]-row[j]) > 1e-9*max(1, math.Abs(row[j])) {
					t.Fatalf("token %d of sequence %d: logit %d is %v, and %v in one forward", m.step, i, j, got[i*columns+j], row[j])
				}
			}
		}
	}
}
