package show

import (
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

func TestRuns(t *testing.T) {
	tests := map[string]struct {
		units []string
		m     devicemap.Map
		want  string // the text for device 0
	}{
		"nothing":             {[]string{"a"}, devicemap.Map{1}, "nothing"},
		"one stretch":         {[]string{"model.embed", "model.h.0", "model.h.1", "model.h.2"}, devicemap.Map{0, 0, 0, 0}, "embed, h.0–2"},
		"with a hole":         {[]string{"h.0", "h.1", "h.2"}, devicemap.Map{0, 1, 0}, "h.0, h.2"},
		"beside a tied head":  {[]string{"embed", "h.9", "h.10", "head"}, devicemap.Map{0, 1, 1, 0}, "embed, head"},
		"two stacks":          {[]string{"m.encoder.layers.0", "m.encoder.layers.1", "m.decoder.layers.0", "m.norm"}, devicemap.Map{0, 0, 0, 0}, "encoder.layers.0–1, decoder.layers.0, norm"},
		"stacks that follow":  {[]string{"a.h.0", "b.h.1"}, devicemap.Map{0, 0}, "a.h.0, b.h.1"},
		"a name and its end":  {[]string{"norm", "model.norm"}, devicemap.Map{0, 0}, "norm, model.norm"},
		"a number that is no": {[]string{"model.1234567890123"}, devicemap.Map{0}, "1234567890123"},
		"a bare number":       {[]string{"0", "1"}, devicemap.Map{0, 0}, "0, 1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := &modelgraph.Graph{}
			for _, u := range test.units {
				g.Units = append(g.Units, modelgraph.Unit{Name: u})
			}
			if got := (&Printer{graph: g, short: shortNames(g)}).runs(test.m, 0); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
