package torchcheck_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/torchcheck"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// FuzzWrite: whatever a config and a plan's words are, what is written of them
// stays within its two literals.
func FuzzWrite(f *testing.F) {
	f.Add([]byte(llama), "small", "a note")
	f.Add([]byte(`{"model_type": "llama", "x": "\"\"\"\\"}`), `"""`, `\`)
	f.Add([]byte("{\"model_type\": \"\u2028\", \"x\": [1e9, -0.0, \"\\u0000\"]}"), "@CONFIG@", "\r\n'''")
	plain := strings.Split(written(f, planned(costmodel.DeviceMap, nil), llama), "json.loads(")
	f.Fuzz(func(t *testing.T, config []byte, name, note string) {
		plan := planned(costmodel.DeviceMap, func(plan *devicemap.Plan) { plan.Model.Name, plan.Warnings = name, []string{note} })
		text := new(bytes.Buffer)
		if err := torchcheck.Write(text, plan, config); err != nil {
			return
		}
		found := literals.FindAllStringSubmatchIndex(text.String(), -1)
		if len(found) < 2 {
			t.Fatalf("literals %v", found)
		}
		for _, at := range found[:2] {
			if !json.Valid(text.Bytes()[at[4]:at[5]]) {
				t.Errorf("no JSON: %q", text.Bytes()[at[4]:at[5]])
			}
		}
		_, rest, _ := strings.Cut(plain[2], `""")`)
		if !strings.HasSuffix(text.String(), rest) || text.String()[found[1][1]:] != rest {
			t.Errorf("behind the literals stands %q", text.String()[found[1][1]:])
		}
	})
}
