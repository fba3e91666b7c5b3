package tables_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

func operates(graph *modelgraph.Graph) bool {
	return slices.ContainsFunc(graph.Layers, func(layer modelgraph.Layer) bool { return layer.Op != modelgraph.Opaque{} })
}

// TestOperations: the table's operations equal devmap.export's for Transformers' model of the same
// config (operations.py).
func TestOperations(t *testing.T) {
	file := "../../../../fixtures/oracle/operations.jsonl.gz"
	if own := os.Getenv("DEVMAP_OPERATIONS"); own != "" {
		file = own
	}
	var known, without, refused, reviewed int
	type sample struct {
		Config json.RawMessage     `json:"config"`
		Layers [][]json.RawMessage `json:"layers"`
	}
	for _, row := range fixtures.Must(fixtures.Rows[sample](file))(t) {
		config := fixtures.Must(parse(row.Config))(t)
		if class, err := tables.Newest.ClassOf("config.json", config.Type, config.Names); err == nil && class.IsReviewed() { // the exporter sees fewer fields
			reviewed++
			continue
		}
		graph, err := tableGraph(row.Config)
		if err != nil {
			refused++
			continue
		}
		if !operates(graph) {
			without++
			continue
		}
		known++
		var want []modelgraph.Layer
		for _, layer := range row.Layers {
			want = append(want, exportedLayer(t, layer))
		}
		if diff := otherLayers(want, graph); len(diff) > 0 {
			t.Errorf("%.300s\n\t%s", row.Config, strings.Join(diff[:min(4, len(diff))], "\n\t"))
		}
	}
	t.Logf("%d configs as devmap.export has them, %d without operations, %d that the table refuses, %d reviewed", known, without, refused, reviewed)
	if known < 2*(without+refused) {
		t.Errorf("only %d of %d configs have operations", known, known+without+refused)
	}
}

// exportedLayer reads [name, op, inputs, more].
func exportedLayer(t *testing.T, parts []json.RawMessage) (layer modelgraph.Layer) {
	t.Helper()
	var fields map[string]any
	var more struct {
		Stream   modelgraph.Stream  `json:"stream"`
		Repeat   int64              `json:"repeat"`
		Declared map[string]float64 `json:"declared"`
	}
	into := []any{&layer.Name, &fields, &layer.Inputs, &more}
	for i, part := range parts {
		if err := json.Unmarshal(part, into[i]); err != nil {
			t.Fatal(err)
		}
	}
	layer.Op, layer.Stream, layer.Repeat = modelgraph.Opaque{}, more.Stream, more.Repeat
	if fields != nil {
		kind := fmt.Sprint(fields["kind"])
		delete(fields, "kind")
		layer.Op, _ = tables.Operation(kind, fields)
	}
	costs := make(map[string]any)
	for name, bytes := range more.Declared {
		costs[name] = bytes
	}
	layer.Declared = tables.DeclaredCosts(costs)
	return layer
}

// inBlock are declared costs; outside of blocks without workspace, which the table may lack.
func inBlock(layer *modelgraph.Layer) any {
	if layer.Declared == nil || strings.Contains(paths.Starred(layer.Name), "*") {
		return layer.Declared
	}
	costs := *layer.Declared
	costs.WorkspaceBytes, costs.Growth.WorkspaceBytes = 0, modelgraph.NotDeclared().Growth.WorkspaceBytes
	return &costs
}

// otherLayers lists layers that differ from a graph's.
func otherLayers(want []modelgraph.Layer, graph *modelgraph.Graph) (diff []string) {
	there := make(map[string]*modelgraph.Layer)
	for i := range graph.Layers {
		there[graph.Layers[i].Name] = &graph.Layers[i]
	}
	for i := range want {
		layer := there[want[i].Name]
		delete(there, want[i].Name)
		switch {
		case layer == nil:
			diff = append(diff, "the table has no "+want[i].Name)
		case layer.Stream == modelgraph.Stream{Kind: modelgraph.Fixed} && len(want[i].Inputs) == 0 && (want[i].Op == modelgraph.Opaque{} || want[i].Op == modelgraph.Parameter{}):
			// no text reaches it
		case layer.Op == modelgraph.Parameter{} && want[i].Op == modelgraph.Opaque{} && len(want[i].Inputs) == 0 && strings.HasSuffix(layer.Name, "shared"):
			// it only holds the tokens' table, which TestSharedTables checks
		case !reflect.DeepEqual(costing(want[i].Op), costing(layer.Op)):
			diff = append(diff, fmt.Sprintf("%s: %T{%s}", want[i].Name, layer.Op, otherFields(costing(want[i].Op), costing(layer.Op))))
		case !slices.Equal(want[i].Inputs, layer.Inputs):
			diff = append(diff, fmt.Sprintf("%s reads %v, the table says %v", want[i].Name, want[i].Inputs, layer.Inputs))
		case want[i].Stream != layer.Stream || max(want[i].Repeat, 1) != max(layer.Repeat, 1):
			diff = append(diff, fmt.Sprintf("%s: %v %d times, the table says %v %d", want[i].Name, want[i].Stream, want[i].Repeat, layer.Stream, layer.Repeat))
		case !reflect.DeepEqual(inBlock(&want[i]), inBlock(layer)):
			diff = append(diff, fmt.Sprintf("%s: %+v, the table says %+v", want[i].Name, want[i].Declared, layer.Declared))
		}
	}
	for name := range there {
		diff = append(diff, "only the table has "+name)
	}
	return diff
}

// costing is an op without the fields that change no cost.
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
		op.OwnScores, op.InnerDropout = false, false // of the source, not of the export
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

// otherFields are the fields in which two ops differ.
func otherFields(want, have modelgraph.Op) string {
	x, y := reflect.ValueOf(want), reflect.ValueOf(have)
	if x.Type() != y.Type() {
		return fmt.Sprintf("%T is right", want)
	}
	var out []string
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			out = append(out, fmt.Sprintf("%s %v, right %v", x.Type().Field(i).Name, y.Field(i), x.Field(i)))
		}
	}
	return strings.Join(out, "; ")
}

// asReaders are types with hand-written readers, which equal the table in every random config.
var asReaders = strings.Fields(`apertus arcee bitnet cohere cwm deepseek_v3 ernie4_5 exaone4 gemma
	glm glm4 helium hunyuan_v1_dense hunyuan_v1_moe lfm2 llama minicpm3 ministral ministral3 mistral olmo2 seed_oss starcoder2`)

// TestOperationsOfReaders: operations, inputs and streams equal the readers'.
func TestOperationsOfReaders(t *testing.T) {
	compared := make(map[string]int)
	for _, row := range fixtures.Must(fixtures.Rows[struct{ Config json.RawMessage }]("../../../../fixtures/oracle/families.jsonl.gz"))(t) {
		var named struct {
			Kind string `json:"model_type"`
		}
		if err := json.Unmarshal(row.Config, &named); err != nil {
			t.Fatal(err)
		}
		reader, err := hf.FromConfig("config.json", row.Config)
		if err != nil || !slices.Contains(asReaders, named.Kind) {
			continue
		}
		table, err := tableGraph(row.Config)
		if err != nil || !operates(table) {
			continue
		}
		compared[named.Kind]++
		for i := range reader.Layers {
			reader.Layers[i].Inputs = []string{}
			for _, at := range reader.Layers[i].InputLayers {
				reader.Layers[i].Inputs = append(reader.Layers[i].Inputs, reader.Layers[at].Name)
			}
		}
		if diff := otherLayers(reader.Layers, table); len(diff) > 0 {
			t.Errorf("%.300s\n\t%s", row.Config, strings.Join(diff[:min(4, len(diff))], "\n\t"))
		}
	}
	for _, kind := range asReaders {
		if compared[kind] == 0 {
			t.Errorf("no config of a %s has operations in the table", kind)
		}
	}
}
