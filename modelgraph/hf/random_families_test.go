package hf

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
)

// randomFamily is a random config and the result of Transformers 5.17
// (fixtures/oracle/families.py): lists, or their digests.
type randomFamily struct {
	Case, Class                  string
	Count                        int64
	Config                       json.RawMessage
	Params, Buffers, Ties, Units json.RawMessage
}

const familiesFile = "../../fixtures/oracle/families.jsonl.gz"

// TestFamilies: names, shapes and order of the parameters, buffers, ties and units of random
// configs are Transformers'. DEVMAP_ORACLE is another file, of more samples (make oracle).
func TestFamilies(t *testing.T) {
	count := map[string]int{}
	for _, c := range randomRows[randomFamily](t, cmp.Or(os.Getenv("DEVMAP_ORACLE"), familiesFile)) {
		modelType, _, _ := strings.Cut(c.Case, "/")
		count[modelType]++
		t.Run(c.Case, func(t *testing.T) { c.check(t) })
	}
	if testing.Verbose() {
		for _, modelType := range slices.Sorted(maps.Keys(count)) {
			t.Logf("%s: %d configs", modelType, count[modelType])
		}
	}
}

// randomRows are the lines of a file.
func randomRows[row any](tb testing.TB, file string) []row {
	tb.Helper()
	return fixtures.Must(fixtures.Rows[row](file))(tb)
}

func (c *randomFamily) check(t *testing.T) {
	t.Helper()
	graph, err := FromConfig("config.json", tiedByDefault(t, c.Config), "5.17")
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Config)
	}
	if graph.Class != c.Class || graph.ParamCount() != c.Count {
		t.Errorf("%s of %d parameters, Transformers has %s of %d", graph.Class, graph.ParamCount(), c.Class, c.Count)
	}
	buffers := graphTensors(graph, func(l *modelgraph.Layer) []modelgraph.Tensor { return l.Buffers })
	slices.Sort(buffers)
	for _, list := range []struct {
		of   string
		want json.RawMessage
		got  []string
	}{
		{"parameters", c.Params, graphTensors(graph, func(l *modelgraph.Layer) []modelgraph.Tensor { return l.Params })},
		{"buffers", c.Buffers, buffers},
		{"ties", c.Ties, graphTies(graph)},
		{"units", c.Units, ownedUnits(graph)},
	} {
		checkList(t, list.of, list.want, list.got, c.Config)
	}
}

// ownedUnits leaves out a norm without tensors (OLMo's), which state_dict does not have.
func ownedUnits(graph *modelgraph.Graph) []string {
	bare := make(map[string]bool)
	for i := range graph.Layers {
		bare[graph.Layers[i].Name] = len(graph.Layers[i].Params)+len(graph.Layers[i].Buffers) == 0
	}
	return slices.DeleteFunc(unitKeys(graph), func(key string) bool { return bare[key] })
}

// checkList compares a list with the oracle's, or with the digest of it.
func checkList(t *testing.T, of string, want json.RawMessage, got []string, config json.RawMessage) {
	t.Helper()
	var lines []string
	if json.Unmarshal(want, &lines) == nil {
		if len(lines)+len(got) == 0 {
			return
		}
		if d := diff.Diff(lines, got); d != "" {
			t.Errorf("%s (-transformers +devmap):\n%s\n%s", of, clip(d), config)
		}
		return
	}
	sum := sha256.Sum256([]byte(strings.Join(got, "\n")))
	if digest := `"` + hex.EncodeToString(sum[:])[:12] + `"`; digest != string(want) {
		t.Errorf("%s are not Transformers': %s", of, config)
	}
}

// TestFamilyFolders: for families that the tables fill, every name that Transformers stores is a
// tensor of the graph. Every parameter of the saved layers is stored or tied.
func TestFamilyFolders(t *testing.T) {
	read := 0
	for _, c := range listedCases(t) {
		modelType, _ := c.Config["model_type"].(string)
		if f := families[modelType]; f == nil || !f.table {
			continue
		}
		read++
		t.Run(c.class(), func(t *testing.T) {
			data := asJSON(t, c.Config)
			graph := fixtures.Must(FromConfig("config.json", data))(t)
			cfg := fixtures.Must(parseConfig("config.json", data))(t)
			assigned := &assignment{graph: graph, names: loadingOf(graph, cfg)}
			assigned.index()
			for _, name := range c.Saved {
				place, ok := assigned.names.module(name, func(name string) bool { return assigned.state[name] != nil })
				if !ok {
					t.Errorf("%q is no tensor of the graph", name)
					continue
				}
				assigned.state[place.name].shared = true
			}
			for _, tie := range graph.Ties {
				for _, name := range tie {
					assigned.state[name].shared = true
				}
			}
			for _, fill := range assigned.order {
				if !fill.shared && !beyond(fill.name, c.Saved) {
					t.Errorf("%q is not stored", fill.name)
				}
			}
		})
	}
	if read < 8 {
		t.Errorf("%d folders", read)
	}
}

// beyond reports a tensor of a list's member whose number is not among the names.
func beyond(name string, names []string) bool {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		member := strings.Join(parts[:i+1], ".") + "."
		if paths.Decimal(part) && !slices.ContainsFunc(names, func(saved string) bool { return strings.HasPrefix(saved, member) }) {
			return true
		}
	}
	return false
}
