package costmodel_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

func ExampleFields() {
	w := costmodel.Workload{Mode: costmodel.Train, Batch: 1, MicroBatches: 4, Recompute: costmodel.RecomputeNone, Loss: costmodel.LossFused}
	for _, f := range costmodel.Fields() {
		if text := f.Text(&w); text != "" {
			fmt.Println(f.Name, text)
		}
	}
	// Output:
	// mode train
	// micro_batches 4
	// loss fused
}

// TestFieldsAreAll: every part of a workload that a plan file has is declared,
// but for those that nobody asks for.
func TestFieldsAreAll(t *testing.T) {
	unasked := []string{"stored_types", "dequantized", "world"}
	declared := map[string]bool{}
	for _, f := range costmodel.Fields() {
		if declared[f.Name] {
			t.Errorf("%s is declared twice", f.Name)
		}
		declared[f.Name] = true
	}
	kind := reflect.TypeFor[costmodel.Workload]()
	for i := range kind.NumField() {
		name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		if declared[name] == slices.Contains(unasked, name) {
			t.Errorf("%s: declared is %v", name, declared[name])
		}
		delete(declared, name)
	}
	for name := range declared {
		t.Errorf("a workload has no %s", name)
	}
}

// other is a workload of which no field has its default.
func other(t *testing.T) costmodel.Workload {
	t.Helper()
	var w costmodel.Workload
	for _, f := range costmodel.Fields() {
		switch at := f.Ref(&w).(type) {
		case *int64:
			*at = 3
		case *bool:
			*at = true
		case *[]string:
			*at = []string{"q_proj", "v_proj"}
		default:
			f.Set(&w, f.Values[len(f.Values)-1])
		}
	}
	return w
}

// TestFieldText: a field is told by its own value and by nothing else, and not
// where that is its default; a copy carries it and nothing else.
func TestFieldText(t *testing.T) {
	all := other(t)
	for _, f := range costmodel.Fields() {
		var w costmodel.Workload
		if f.Text(&w) != "" {
			t.Errorf("%s of nothing is %q", f.Name, f.Text(&w))
		}
		f.Copy(&w, &all)
		for _, g := range costmodel.Fields() {
			if told := g.Text(&w) != ""; told != (g.Name == f.Name) {
				t.Errorf("%s copied: %s is %q", f.Name, g.Name, g.Text(&w))
			}
		}
		if f.Values == nil || f.Default == "" {
			continue
		}
		if f.Set(&w, f.Default); f.Text(&w) != "" {
			t.Errorf("%s by default is told: %q", f.Name, f.Text(&w))
		}
	}
}

// TestFault: what is no value of its kind is named by its field.
func TestFault(t *testing.T) {
	good := other(t)
	good.Batch = 6
	if field, msg := good.Fault(); field != "" {
		t.Fatalf("%s: %s", field, msg)
	}
	for _, f := range costmodel.Fields() {
		w := good
		switch at := f.Ref(&w).(type) {
		case *int64:
			*at = -1
		case *bool, *[]string:
			continue
		default:
			f.Set(&w, "none of them")
		}
		if field, msg := w.Fault(); field != f.Name || msg == "" {
			t.Errorf("%s: %q %s", f.Name, field, msg)
		}
	}
	good.StoredTypes, good.Precision = true, "garbage"
	if field, _ := good.Fault(); field != "precision" {
		t.Errorf("a precision that is none passes as a stored one: %q", field)
	}
}
