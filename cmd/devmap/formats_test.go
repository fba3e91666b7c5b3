package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/certify"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestFormatsNameEveryField: every field of a file is on a page of docs/formats, and each op's in
// the row of its kind.
func TestFormatsNameEveryField(t *testing.T) {
	names := fixtures.Must(filepath.Glob(filepath.Join("..", "..", "docs", "formats", "*.md")))(t)
	var text []byte
	for _, name := range names {
		page := fixtures.Must(os.ReadFile(name))(t)
		text = append(text, page...)
	}
	for _, v := range []any{
		devicemap.Plan{},
		devicemap.Plan{}.Model,
		devicemap.Plan{}.Objective,
		devicemap.Plan{}.Offload,
		devicemap.Stage{},
		devicemap.Prediction{},
		devicemap.Predicted{},
		modelgraph.Stream{},
		report.Report{},
		report.Device{},
		report.Device{}.Measured,
		report.Region{},
		report.Unwritten{},
		report.Step{},
		report.Turn{},
		report.DeviceTime{},
		report.GPU{},
		report.GPUMemory{},
		report.Loading{},
		report.Link{},
		certify.Document{},
		certify.Check{},
		certify.GPU{},
		certify.Before{},
		certify.Reference{},
		certify.Unload{},
		certify.Poison{},
		certify.Left{},
		certify.Reading{},
		certify.Refill{},
		certify.After{},
		certify.AfterGPU{},
		certify.Remaining{},
		executor.MonitoredGPU{},
		executor.Holding{},
		costmodel.Device{},
		costmodel.Device{}.Own,
		weights.State{},
	} {
		for _, field := range jsonFields(v) {
			if !strings.Contains(string(text), "`"+field+"`") && !strings.Contains(string(text), `"`+field+`"`) {
				t.Errorf("docs/formats does not explain %q of %T", field, v)
			}
		}
	}
	for kind, op := range map[string]modelgraph.Op{
		"embedding":   modelgraph.Embedding{},
		"norm":        modelgraph.Norm{},
		"attention":   modelgraph.Attention{},
		"mlp":         modelgraph.MLP{},
		"moe":         modelgraph.MoE{},
		"head":        modelgraph.Head{},
		"linear":      modelgraph.Linear{},
		"conv":        modelgraph.Conv{},
		"state-space": modelgraph.StateSpace{},
		"rotary":      modelgraph.Rotary{},
	} {
		_, row, _ := strings.Cut(string(text), "| `"+kind+"` |")
		row, _, _ = strings.Cut(row, "\n")
		for _, field := range jsonFields(op) {
			if !strings.Contains(row, "`"+field+"`") {
				t.Errorf("docs/formats: the row of %q lacks %q", kind, field)
			}
		}
	}
}

// jsonFields returns the names of a struct's fields in a file.
func jsonFields(v any) (names []string) {
	typ := reflect.TypeOf(v)
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}
