package hf

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// runningCase has the values that Transformers' modules run with (fixtures/oracle/running.py).
type runningCase struct {
	Case       string                 `json:"case"`
	Config     json.RawMessage        `json:"config"`
	Refused    string                 `json:"refused"`
	Norms      [][2]any               `json:"norms"`
	Attention  [][5]any               `json:"attention"`
	Transposed []string               `json:"transposed"`
	Act        string                 `json:"act"`
	EmbedScale *float64               `json:"embed_scale"`
	Padding    *int64                 `json:"padding"`
	LogitCap   *float64               `json:"logit_cap"`
	Ropes      map[string]runningRope `json:"ropes"`

	Activations map[string]string `json:"activations"` // of the first
}

type runningRope struct {
	Type    string    `json:"type"`
	Inverse []float64 `json:"inv_freq"`
	Factor  float64   `json:"attention_scaling"`
	Longer  []any     `json:"longer"`
}

// TestRunning compares running values with Transformers, config by config. A config that
// Transformers refuses still makes a graph, with a note of the gap. A number may have a point or
// not.
func TestRunning(t *testing.T) {
	var cases []runningCase
	readGzip(t, "../../fixtures/oracle/running.json.gz", &cases)
	activations := cases[0].Activations
	seen := make(map[string]int)
	for _, c := range cases[1:] {
		t.Run(c.Case, func(t *testing.T) {
			graph, err := FromConfig("config.json", c.Config)
			if err != nil {
				if c.Refused == "" {
					t.Fatal(err)
				}
				seen["refused by both"]++
				return
			}
			if c.Refused != "" {
				if len(graph.Unknown) == 0 && !failing(graph) && !strings.Contains(c.Refused, "float, got int") && !strings.Contains(c.Refused, "int, got float") {
					t.Errorf("nothing is said of what Transformers refuses with %s", c.Refused)
				}
				seen["refused by Transformers"]++
				return
			}
			c.check(t, graph, activations, seen)
		})
	}
	t.Logf("%v", seen)
	if seen["frequencies"] < 10_000 || seen["another"]*50 > seen["frequencies"] {
		t.Errorf("%d of %d frequencies differ from torch's in the last place", seen["another"], seen["frequencies"])
	}
}

// failing reports a graph with frequencies that cannot be computed.
func failing(graph *modelgraph.Graph) bool {
	return slices.ContainsFunc(graph.Layers, func(layer modelgraph.Layer) bool {
		op, ok := layer.Op.(modelgraph.Attention)
		if !ok || !op.Rope {
			return false
		}
		_, _, err := op.Frequencies(1)
		return err != nil
	})
}

func (c *runningCase) check(t *testing.T, graph *modelgraph.Graph, activations map[string]string, seen map[string]int) {
	t.Helper()
	if len(graph.Unknown) > 0 && !strings.Contains(c.Case, "/v5-by-layer") { // a family without layer types leaves those out
		t.Errorf("it runs in Transformers, here it is said: %q", graph.Unknown)
	}
	ops := make(map[string]modelgraph.Op)
	for i := range graph.Layers {
		ops[graph.Layers[i].Name] = graph.Layers[i].Op
	}
	for _, norm := range c.Norms {
		name, _ := norm[0].(string)
		if got := epsilonOf(ops, name); got != norm[1] {
			t.Errorf("%s has epsilon %v, Transformers %v", name, got, norm[1])
		}
	}
	for i, attention := range c.Attention {
		name, _ := attention[0].(string)
		op, ok := ops[strings.TrimSuffix(name, ".self")].(modelgraph.Attention)
		if !ok {
			t.Fatalf("%s is no attention", name)
		}
		c.checkAttention(t, i, op, attention, seen)
	}
	c.checkEnds(t, graph)
	for _, op := range ops {
		if op, ok := op.(modelgraph.MLP); ok && op.Activation != "" && op.Gated == gated(graph) && activations[op.Activation] != c.Act {
			t.Errorf("activation %q is %s, Transformers has %s", op.Activation, activations[op.Activation], c.Act)
			break
		}
	}
	for name, op := range ops {
		for _, linear := range c.Transposed {
			if strings.HasPrefix(linear, name+".") && !transposed(op) {
				t.Errorf("%s is a Conv1D, %s is not transposed", linear, name)
			}
		}
		if len(c.Transposed) == 0 && transposed(op) {
			t.Errorf("%s is transposed", name)
		}
	}
}

// gated distinguishes the language model's feed-forwards from a vision tower's.
func gated(graph *modelgraph.Graph) bool { return graph.Family != "gpt2" && graph.Family != "bert" }

func transposed(op modelgraph.Op) bool {
	switch op := op.(type) {
	case modelgraph.Attention:
		return op.Transposed
	case modelgraph.MLP:
		return op.Transposed
	}
	return false
}

func epsilonOf(ops map[string]modelgraph.Op, name string) any {
	if norm, ok := ops[name].(modelgraph.Norm); ok {
		return norm.Epsilon
	}
	for _, suffix := range []string{".q_norm", ".k_norm"} {
		if attention, ok := ops[strings.TrimSuffix(name, suffix)].(modelgraph.Attention); ok {
			return attention.QKEpsilon
		}
	}
	return nil
}

// checkAttention compares scale, window, cap and rotation of layer i.
func (c *runningCase) checkAttention(t *testing.T, i int, op modelgraph.Attention, want [5]any, seen map[string]int) {
	t.Helper()
	scale := op.Scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(op.HeadDim))
	}
	if got, ok := want[1].(float64); !ok || float32(got) != float32(scale) {
		t.Errorf("layer %d: scale %v, Transformers %v", i, scale, want[1])
	}
	if got := orNil(float64(op.Window)); got != want[2] {
		t.Errorf("layer %d: window %v, Transformers %v", i, got, want[2])
	}
	if got := orNil(op.ScoreCap); got != want[3] {
		t.Errorf("layer %d: cap %v, Transformers %v", i, got, want[3])
	}
	if len(c.Ropes) == 0 {
		if op.Rope {
			t.Errorf("layer %d rotates", i)
		}
		return
	}
	layerType, _ := want[4].(string)
	rope := c.Ropes[layerType]
	if kind := strings.TrimPrefix(rope.Type, "default"); kind != op.Rotation.Type {
		t.Errorf("layer %d: rope type %q, Transformers %q", i, op.Rotation.Type, rope.Type)
	}
	if i > 0 && len(c.Ropes) == 1 {
		return // as in layer 0
	}
	rope.check(t, op, seen)
}

// check compares the frequencies themselves.
func (rope *runningRope) check(t *testing.T, op modelgraph.Attention, seen map[string]int) {
	t.Helper()
	inverse, factor, err := op.Frequencies(1)
	if rope.Type == "longrope" {
		if err == nil || !strings.Contains(err.Error(), "longrope") {
			t.Errorf("longrope is not refused by name: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if float32(factor) != float32(rope.Factor) {
		t.Errorf("%+v: factor %v, Transformers %v", op.Rotation, factor, rope.Factor)
	}
	sameFrequencies(t, op.Rotation, inverse, rope.Inverse, seen)
	if len(rope.Longer) == 0 {
		return
	}
	tokens, _ := rope.Longer[0].(float64)
	raw, _ := rope.Longer[1].([]any)
	longer := make([]float64, len(raw))
	for i := range raw {
		longer[i], _ = raw[i].(float64)
	}
	inverse, _, err = op.Frequencies(int64(tokens))
	if err != nil {
		t.Fatal(err)
	}
	sameFrequencies(t, op.Rotation, inverse, longer, seen)
}

// sameFrequencies allows four units in the last place: torch's power is off by one, and llama3
// subtracts such values.
func sameFrequencies(t *testing.T, rotation modelgraph.Rotation, got []float32, want []float64, seen map[string]int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%+v: %d frequencies, Transformers has %d", rotation, len(got), len(want))
	}
	for i := range got {
		apart := int64(math.Float32bits(got[i])) - int64(math.Float32bits(float32(want[i])))
		seen["frequencies"]++
		if apart != 0 {
			seen["another"]++
		}
		if apart > 4 || apart < -4 {
			t.Errorf("%+v: frequency %d is %v, Transformers %v", rotation, i, got[i], want[i])
		}
	}
}

// checkEnds compares the token embedding and the head.
func (c *runningCase) checkEnds(t *testing.T, graph *modelgraph.Graph) {
	t.Helper()
	tokens := 0
	for i := range graph.Layers {
		switch op := graph.Layers[i].Op.(type) {
		case modelgraph.Embedding:
			if strings.Contains(graph.Layers[i].Name, "vision") || op.Index != modelgraph.TokenIndex {
				continue
			}
			tokens++
			if c.EmbedScale != nil != op.Scaled || c.EmbedScale != nil && float32(op.Factor) != float32(*c.EmbedScale) {
				t.Errorf("factor %v of the embedding, Transformers %v", op.Factor, c.EmbedScale)
			}
			if c.Padding == nil && op.Padding != 0 || c.Padding != nil && op.Padding != *c.Padding+1 {
				t.Errorf("padding %d, Transformers %v", op.Padding, c.Padding)
			}
		case modelgraph.Head:
			if c.LogitCap == nil && op.LogitCap != 0 || c.LogitCap != nil && op.LogitCap != *c.LogitCap {
				t.Errorf("cap of logits %v, Transformers %v", op.LogitCap, c.LogitCap)
			}
		}
	}
	if tokens != 1 {
		t.Errorf("%d tables of tokens", tokens)
	}
}

// orNil is a number in the oracle's form: null for none.
func orNil(number float64) any {
	if number == 0 {
		return nil
	}
	return number
}
