package hf

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// tableGraph is the graph of a config by the table, even if a reader reads it.
func tableGraph(data []byte) (*modelgraph.Graph, error) {
	cfg, err := parseConfig("config.json", data)
	if err != nil {
		return nil, err
	}
	tree, class, err := newest.treeOf(cfg)
	if err != nil {
		return nil, err
	}
	return newest.graph(cfg, tree, class, "m", "config.json")
}

// costing is an op without what no cost depends on.
func costing(op modelgraph.Op) modelgraph.Op {
	switch op := op.(type) {
	case modelgraph.Embedding:
		op.Factor, op.Padding, op.Index = 0, 0, ""
		return op
	case modelgraph.Norm:
		op.Epsilon = 0
		if op.Style == "" {
			op.Style = modelgraph.RMSNorm
		}
		return op
	case modelgraph.Attention:
		if op.ValueDim == op.HeadDim {
			op.ValueDim = 0
		}
		op.Scale, op.Rotation, op.QKEpsilon, op.ScoreCap, op.Transposed = 0, modelgraph.Rotation{}, 0, 0, false
		return op
	case modelgraph.MLP:
		op.Transposed = false
		return op
	case modelgraph.Head:
		op.LogitCap = 0
		return op
	}
	return op
}

func opaque(graph *modelgraph.Graph) bool {
	return !slices.ContainsFunc(graph.Layers, func(layer modelgraph.Layer) bool { _, is := layer.Op.(modelgraph.Opaque); return !is })
}

// TestOperations: what the table says of layers is what readers say.
func TestOperations(t *testing.T) {
	type tally struct{ configs, table, operations, same int }
	types := make(map[string]*tally)
	for _, row := range familyConfigs(t) {
		kind := fmt.Sprint(row["model_type"])
		data, _ := json.Marshal(row)
		reader, err := FromConfig("config.json", data)
		if err != nil || len(reader.Layers) == 0 {
			continue
		}
		if types[kind] == nil {
			types[kind] = new(tally)
		}
		types[kind].configs++
		table, err := tableGraph(data)
		if err != nil {
			continue
		}
		types[kind].table++
		if opaque(table) {
			continue
		}
		types[kind].operations++
		diff := unlike(reader, table)
		if len(diff) == 0 {
			types[kind].same++
		} else if testing.Verbose() {
			t.Logf("%s: %s", kind, strings.Join(diff[:min(3, len(diff))], "\n\t"))
		}
	}
	for _, kind := range slices.Sorted(func(yield func(string) bool) {
		for kind := range types {
			if !yield(kind) {
				return
			}
		}
	}) {
		t.Logf("%-22s %+v", kind, *types[kind])
	}
}

func unlike(reader, table *modelgraph.Graph) (diff []string) {
	there := make(map[string]*modelgraph.Layer)
	for i := range reader.Layers {
		there[reader.Layers[i].Name] = &reader.Layers[i]
	}
	for i := range table.Layers {
		layer := &table.Layers[i]
		other := there[layer.Name]
		delete(there, layer.Name)
		switch {
		case other == nil:
			diff = append(diff, "only the table has "+layer.Name+fmt.Sprintf(" %T", layer.Op))
		case !reflect.DeepEqual(costing(other.Op), costing(layer.Op)):
			diff = append(diff, fmt.Sprintf("%s: %s", layer.Name, otherFields(costing(other.Op), costing(layer.Op))))
		case other.Stream != layer.Stream:
			diff = append(diff, fmt.Sprintf("%s: reader %+v, table %+v", layer.Name, other.Stream, layer.Stream))
		case max(other.Repeat, 1) != max(layer.Repeat, 1):
			diff = append(diff, fmt.Sprintf("%s: reader repeats %d, table %d", layer.Name, other.Repeat, layer.Repeat))
		case fmt.Sprint(inputsOf(reader, other)) != fmt.Sprint(inputsOf(table, layer)):
			diff = append(diff, fmt.Sprintf("%s: reader reads %v, table %v", layer.Name, inputsOf(reader, other), inputsOf(table, layer)))
		}
	}
	for name := range there {
		diff = append(diff, "only the reader has "+name+fmt.Sprintf(" %T", there[name].Op))
	}
	return diff
}

// otherFields are those that two ops have otherwise.
func otherFields(reader, table modelgraph.Op) string {
	x, y := reflect.ValueOf(reader), reflect.ValueOf(table)
	if x.Type() != y.Type() {
		return fmt.Sprintf("reader %T, table %T", reader, table)
	}
	var out []string
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			out = append(out, fmt.Sprintf("%s reader %v, table %v", x.Type().Field(i).Name, x.Field(i), y.Field(i)))
		}
	}
	return strings.Join(out, "; ")
}

func inputsOf(graph *modelgraph.Graph, layer *modelgraph.Layer) (names []string) {
	for _, i := range layer.InputLayers {
		names = append(names, graph.Layers[i].Name)
	}
	return names
}

// familyConfigs are those of fixtures/oracle/families.jsonl.gz and the older files of families.
func familyConfigs(t *testing.T) (configs []map[string]any) {
	t.Helper()
	packed, err := os.ReadFile("../../fixtures/oracle/families.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var row struct {
			Config map[string]any `json:"config"`
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		configs = append(configs, row.Config)
	}
	return configs
}
