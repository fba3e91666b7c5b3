package costmodel_test

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestDegree: a degree, a number or auto, is written as it is read.
func TestDegree(t *testing.T) {
	for text, want := range map[string]costmodel.Degree{"1": 1, `"auto"`: costmodel.AutoDegree, "8": 8} {
		var got costmodel.Degree
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if out, err := json.Marshal(got); err != nil || string(out) != text {
			t.Errorf("%s is written %s, %v", text, out, err)
		}
	}
	for _, text := range []string{"0", "-1", "1.5", `"all"`, "[]", "null", "99999999999", `""`} {
		var got costmodel.Degree
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is read as %v", text, got)
		}
	}
	if degree := costmodel.Degree(0); degree.Count() != 1 || degree.String() != "1" || costmodel.AutoDegree.Count() != 1 {
		t.Errorf("%v has %d", degree, degree.Count())
	}
}
