package forward

import (
	"testing"

	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// TestResident: a component's tensors on an H200, each on its own.
func TestResident(t *testing.T) {
	for config, want := range map[string]int64{
		sdxlUNet: 5275597824 - 34603008, fluxDev: 23838507520 - 34603008, `{"_class_name":"AutoencoderKLWan"}`: 289442816 - 34603008, fluxVAE: 173154816,
	} {
		graph, err := diffusers.FromConfig("config.json", []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		cast(graph)
		if got := Resident(graph); got != want {
			t.Errorf("%s: %d, want %d (%+.3f %%) %d", graph.Class, got, want, 100*float64(got-want)/float64(want), graph.ParamBytes())
		}
	}
}
