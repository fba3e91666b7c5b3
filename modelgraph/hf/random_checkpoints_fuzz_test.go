package hf

import (
	"strings"
	"testing"
)

// FuzzStoredNames: for all names, types and shapes in a folder's files, its tensors find a place or
// it is refused. No parameter is counted as larger than its stored bytes.
func FuzzStoredNames(f *testing.F) {
	cases := randomRows[randomCheckpoint](f, checkpointsFile)
	for i := range cases {
		f.Add(i, strings.Join(cases[i].Stored, "\n"))
	}
	f.Fuzz(func(t *testing.T, at int, stored string) {
		if at < 0 || at >= len(cases) {
			return
		}
		c := cases[at]
		c.Stored = nil
		for line := range strings.SplitSeq(stored, "\n") {
			if len(strings.Fields(line)) == 3 {
				c.Stored = append(c.Stored, line)
			}
		}
		graph, _, err := c.read()
		if err != nil {
			return
		}
		for i := range graph.Layers {
			for _, param := range graph.Layers[i].Params {
				var owned int64
				for _, part := range param.Parts {
					owned += part.End - part.Begin
				}
				if len(param.Parts) > 0 && param.Numel > 8*owned {
					t.Errorf("%s %s of %d elements is read from %d bytes", graph.Layers[i].Name, param.Name, param.Numel, owned)
				}
			}
		}
	})
}
