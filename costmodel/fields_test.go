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
	workload := costmodel.Workload{Mode: costmodel.Train, Batch: 1, MicroBatches: 4, Recompute: costmodel.RecomputeNone, Loss: "fused"}
	for _, field := range costmodel.Fields() {
		if text := field.Text(&workload); text != "" {
			fmt.Println(field.Name, text)
		}
	}
	// Output:
	// mode train
	// micro_batches 4
	// loss fused
}

// TestFieldsAreAll: every part of a workload in plan files is a field, or not settable by users.
func TestFieldsAreAll(t *testing.T) {
	unasked := []string{"stored_types", "host_shards", "dequantized", "world", "deepspeed", "images_mean", "lengths", "rows", "-", ""} // "-": no part of a plan file; "": Serving, of one command
	declared := map[string]bool{}
	for _, field := range costmodel.Fields() {
		if declared[field.Name] {
			t.Errorf("%s is declared twice", field.Name)
		}
		declared[field.Name] = true
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

// other is a workload without a default in any field.
func other(t *testing.T) costmodel.Workload {
	t.Helper()
	var workload costmodel.Workload
	for _, field := range costmodel.Fields() {
		switch at := field.Ref(&workload).(type) {
		case *int64:
			*at = 3
		case *float64:
			*at = .5
		case *bool:
			*at = true
		case *[]string:
			*at = []string{"q_proj", "v_proj"}
		case interface{ Set(text string) error }: // a degree
			if err := at.Set("auto"); err != nil {
				t.Fatal(err)
			}
		default:
			field.Set(&workload, field.Values[len(field.Values)-1])
		}
	}
	return workload
}

// TestFieldText: only a field's own value is reported, and not its default; a copy carries only it.
func TestFieldText(t *testing.T) {
	all := other(t)
	for _, field := range costmodel.Fields() {
		var workload costmodel.Workload
		if field.Text(&workload) != "" {
			t.Errorf("%s of nothing is %q", field.Name, field.Text(&workload))
		}
		field.Copy(&workload, &all)
		for _, g := range costmodel.Fields() {
			if printed := g.Text(&workload) != ""; printed != (g.Name == field.Name) {
				t.Errorf("%s copied: %s is %q", field.Name, g.Name, g.Text(&workload))
			}
		}
		if field.Values == nil || field.Default == "" {
			continue
		}
		field.Set(&workload, field.Default)
		if field.Text(&workload) != "" {
			t.Errorf("%s by default is told: %q", field.Name, field.Text(&workload))
		}
	}
}

// TestFault: an unknown value is named by its field.
func TestFault(t *testing.T) {
	good := other(t)
	good.Batch = 6
	if field, msg := good.Fault(); field != "" {
		t.Fatalf("%s: %s", field, msg)
	}
	for _, f := range costmodel.Fields() {
		workload := good
		switch at := f.Ref(&workload).(type) {
		case *int64:
			*at = -1
		case *float64:
			*at = 1.5
			if f.Name == "expert_capacity" {
				*at = -1.5
			}
		case *bool, *[]string:
			continue
		case *costmodel.Degree:
			*at = -7
		default:
			f.Set(&workload, "none of them")
		}
		if field, msg := workload.Fault(); field != f.Name || msg == "" {
			t.Errorf("%s: %q %s", f.Name, field, msg)
		}
	}
	good.StoredTypes, good.Precision = true, "garbage"
	if field, _ := good.Fault(); field != "precision" {
		t.Errorf("a precision that is none passes as a stored one: %q", field)
	}
}

// TestFieldLeftOut: values from the checkpoint's types, and defaults, count as left out.
func TestFieldLeftOut(t *testing.T) {
	stored := costmodel.Workload{Precision: costmodel.BF16True, StoredTypes: true}
	for _, field := range costmodel.Fields() {
		if text := field.Text(&stored); text != "" {
			t.Errorf("%s of stored types is %q", field.Name, text)
		}
		var plain costmodel.Workload
		switch field.Name {
		case "quantize", "loss", "attention":
			field.Set(&plain, field.Default)
			if !reflect.DeepEqual(plain, costmodel.Workload{}) {
				t.Errorf("%s set to %s is kept: %+v", field.Name, field.Default, plain)
			}
		}
	}
}
