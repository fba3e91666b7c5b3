package hf

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// oracleCase has Transformers 5.17's tensors of a config (fixtures/oracle/export.py).
type oracleCase struct {
	Case         string          `json:"case"`
	ModelClass   string          `json:"model_class"`
	Config       json.RawMessage `json:"config"`
	Params       int64           `json:"params"`
	BuffersNumel int64           `json:"buffers_numel"`
	NoSplit      []string        `json:"no_split_instances"`
	Tied         [][]string      `json:"tied"`
	Tensors      [][]any         `json:"tensors"`
	Buffers      [][]any         `json:"buffers"`
}

// TestOracle compares every family with Transformers, name for name.
func TestOracle(t *testing.T) {
	files, err := filepath.Glob("../../fixtures/oracle/*.json.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no oracle files: %v", err)
	}
	for _, file := range files {
		if notCases[filepath.Base(file)] {
			continue
		}
		for _, c := range readOracle(t, file) {
			t.Run(c.Case, func(t *testing.T) { c.check(t) })
		}
	}
}

// notCases are the oracle files of other tests: configs that Transformers refuses, checkpoint
// names, and configs of all types.
var notCases = map[string]bool{"refused.json.gz": true, "names.json.gz": true, "sweep.json.gz": true, "public.json.gz": true, "running.json.gz": true}

// refusedHere are configs that Transformers builds and devmap does not, with the reason.
var refusedHere = map[string]string{
	"llama/kv-not-divisor": "the module can be made, and fails in its first forward: the KV heads do not divide the heads",
}

func (c *oracleCase) check(t *testing.T) {
	t.Helper()
	g, err := FromConfig("config.json", c.Config, "5.17")
	if why, ok := refusedHere[c.Case]; ok {
		if err == nil {
			t.Fatalf("it is built, though %s", why)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if g.Class != c.ModelClass {
		t.Errorf("class %q, Transformers makes %q", g.Class, c.ModelClass)
	}
	if g.ParamCount() != c.Params || bufferCount(g) != c.BuffersNumel {
		t.Errorf("%d parameters and %d buffer elements, Transformers has %d and %d", g.ParamCount(), bufferCount(g), c.Params, c.BuffersNumel)
	}
	if d := cmp.Diff(oracleTensors(c.Tensors), graphTensors(g, func(l *modelgraph.Layer) []modelgraph.Tensor { return l.Params })); d != "" {
		t.Errorf("parameters (-transformers +devmap):\n%s", clip(d))
	}
	// The order of a module's buffers does not matter.
	want, got := oracleTensors(c.Buffers), graphTensors(g, func(l *modelgraph.Layer) []modelgraph.Tensor { return l.Buffers })
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("buffers (-transformers +devmap):\n%s", clip(d))
	}
	if d := cmp.Diff(oracleTies(c.Tied), graphTies(g)); d != "" {
		t.Errorf("ties (-transformers +devmap):\n%s", clip(d))
	}
	if d := cmp.Diff(c.units(), unitKeys(g)); d != "" {
		t.Errorf("units (-transformers +devmap):\n%s", clip(d))
	}
}

// units are the outermost no-split instances and the leaf modules outside them, a bare parameter
// under its own name, in module order.
func (c *oracleCase) units() []string {
	var modules []string
	var names []string
	for _, t := range slices.Concat(c.Tensors, c.Buffers) {
		name, _ := t[0].(string)
		names = append(names, name)
	}
	for _, t := range c.Tied {
		names = append(names, t[1:]...)
	}
	for _, n := range names {
		modules = append(modules, n[:max(0, strings.LastIndexByte(n, '.'))])
	}
	var keys []string
	for i, n := range names {
		key := modules[i]
		if slices.ContainsFunc(modules, func(m string) bool { return strings.HasPrefix(m, key+".") }) || key == "" {
			key = n
		}
		for _, s := range c.NoSplit {
			if strings.HasPrefix(key, s+".") || key == s {
				key = s
			}
		}
		for _, s := range c.NoSplit { // outermost
			if strings.HasPrefix(key, s+".") {
				key = s
			}
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func unitKeys(g *modelgraph.Graph) []string {
	var keys []string
	for i := range g.Units {
		keys = append(keys, g.Units[i].Keys...)
	}
	slices.Sort(keys)
	return keys
}

func oracleTensors(ts [][]any) []string {
	out := []string{}
	for _, t := range ts {
		name, _ := t[0].(string)
		shape, _ := json.Marshal(t[1])
		out = append(out, name+" "+string(shape))
	}
	return out
}

func graphTensors(g *modelgraph.Graph, of func(*modelgraph.Layer) []modelgraph.Tensor) []string {
	out := []string{}
	for i := range g.Layers {
		l := &g.Layers[i]
		for _, t := range of(l) {
			if t.Owner != "" {
				continue
			}
			dims := t.Shape
			if dims == nil {
				dims = []int64{}
			}
			shape, _ := json.Marshal(dims)
			out = append(out, modelgraph.FullName(l.Name, t.Name)+" "+string(shape))
		}
	}
	return out
}

// oracleTies joins Transformers' pairs by owner.
func oracleTies(pairs [][]string) []string {
	byOwner := map[string][]string{}
	for _, p := range pairs {
		byOwner[p[0]] = append(byOwner[p[0]], p[1:]...)
	}
	out := []string{}
	for owner, others := range byOwner {
		slices.Sort(others)
		out = append(out, owner+" = "+strings.Join(others, " = "))
	}
	slices.Sort(out)
	return out
}

func graphTies(g *modelgraph.Graph) []string {
	out := []string{}
	for _, t := range g.Ties {
		others := slices.Sorted(slices.Values(t[1:]))
		out = append(out, t[0]+" = "+strings.Join(others, " = "))
	}
	slices.Sort(out)
	return out
}

func readOracle(t *testing.T, file string) []oracleCase {
	t.Helper()
	var cases []oracleCase
	readGzip(t, file, &cases)
	return cases
}

func readGzip(t *testing.T, file string, into any) {
	t.Helper()
	f := fixtures.Must(os.Open(file))(t)
	defer f.Close()
	z := fixtures.Must(gzip.NewReader(f))(t)
	if err := json.NewDecoder(z).Decode(into); err != nil {
		t.Fatal(file, err)
	}
}

func clip(s string) string {
	if len(s) > 3000 {
		return s[:3000] + "…"
	}
	return s
}
