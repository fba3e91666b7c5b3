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
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestFormatsNameEveryField: a field that a file has is in FORMATS.md, op by
// op in the row of its kind.
func TestFormatsNameEveryField(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "FORMATS.md"))
	if err != nil {
		t.Fatal(err)
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
				t.Errorf("FORMATS.md does not explain %q of %T", field, v)
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
				t.Errorf("FORMATS.md: the row of %q lacks %q", kind, field)
			}
		}
	}
}

// jsonFields are the names that a struct's fields have in a file.
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
