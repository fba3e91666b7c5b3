package partition

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

func throwRead(t testing.TB, file string) *Problem {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		MaxSizePerFPGA    float64
		MaxFPGAs, MaxCPUs int
		Nodes             []struct {
			ID                      int
			Name                    string
			SupportedOnFpga         any
			CPULatency, FpgaLatency float64
			IsBackwardNode          any
			ColorClass              *int
			Size                    float64
		}
		Edges []struct {
			SourceID, DestID int
			Cost             float64
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	p := &Problem{Kinds: []Kind{{"accelerator", d.MaxFPGAs, d.MaxSizePerFPGA, false}, {"cpu", d.MaxCPUs, inf, true}}}
	id := map[int]int{}
	for i, n := range d.Nodes {
		id[n.ID] = i
		g := 1000000 + i
		if n.ColorClass != nil {
			g = *n.ColorClass
		}
		f := n.FpgaLatency
		if n.SupportedOnFpga == false || n.SupportedOnFpga == 0.0 {
			f = inf
		}
		p.Nodes = append(p.Nodes, Node{Name: n.Name, Time: []float64{f, n.CPULatency}, Size: n.Size, Group: g, Backward: n.IsBackwardNode == true || n.IsBackwardNode == 1.0})
	}
	for _, e := range d.Edges {
		p.Edges = append(p.Edges, [2]int{id[e.SourceID], id[e.DestID]})
		p.Nodes[id[e.SourceID]].Transfer = e.Cost
	}
	return p
}

func throwFiles(t testing.TB) []string {
	sel := os.Getenv("ANYF")
	if sel == "" {
		t.Skip()
	}
	fs, _ := filepath.Glob("/tmp/auth/dnn-partitioning/*-inputs/*/*.json")
	sort.Strings(fs)
	var out []string
	for _, f := range fs {
		for _, s := range strings.Split(sel, ",") {
			if strings.Contains(f, s) {
				out = append(out, f)
				break
			}
		}
	}
	return out
}
