package strategy

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// TestBalancedMaps: the maps equal Accelerate 1.15's for 18 public models on 2, 4 and 8 GPUs with
// more memory than each model.
func TestBalancedMaps(t *testing.T) {
	files, err := filepath.Glob("../../fixtures/tensors/*.json.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tensor files: %v", err)
	}
	for _, file := range files {
		config, maps := recordedMaps(t, file)
		g, err := hf.FromConfig("config.json", config)
		if err != nil {
			t.Fatal(file, err)
		}
		for n, want := range maps {
			count := fixtures.Must(strconv.Atoi(n))(t)
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json.gz")+"/"+n, func(t *testing.T) {
				got := balanced(g, &weightSizes{}, slices.Repeat([]int64{1 << 43}, count))
				recorded := &autoMap{places: want}
				for i := range g.Units {
					device, ok := recorded.deviceOf(g.Units[i].Keys)
					if !ok || int(got[i]) != device {
						t.Errorf("%s on GPU %d, and Accelerate puts it on %d", g.Units[i].Name, got[i], device)
					}
				}
			})
		}
	}
}

func recordedMaps(t *testing.T, file string) (config []byte, maps map[string]map[string]int) {
	t.Helper()
	f := fixtures.Must(os.Open(file))(t)
	defer f.Close() //nolint:errcheck // it was read
	z := fixtures.Must(gzip.NewReader(f))(t)
	var c struct {
		Config json.RawMessage
		Maps   map[string]struct{ Map map[string]int } `json:"accelerate_maps"`
	}
	if err := json.NewDecoder(z).Decode(&c); err != nil {
		t.Fatal(file, err)
	}
	maps = map[string]map[string]int{}
	for n, m := range c.Maps {
		maps[n] = m.Map
	}
	return c.Config, maps
}
