package latency

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
	"encoding/json"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

func readFile(path string) *Problem {
	data, err := os.ReadFile(path)
	if err != nil { panic(err) }
	var f struct {
		Cap float64 `json:"maxSizePerFPGA"`
		K int `json:"maxFPGAs"`
		Nodes []struct{ ID int `json:"id"`; Name string; Supported any `json:"supportedOnFpga"`; CPU float64 `json:"cpuLatency"`; FPGA float64 `json:"fpgaLatency"`; Size float64 `json:"size"`; Color *int `json:"colorClass"` }
		Edges []struct{ S int `json:"sourceId"`; D int `json:"destId"`; Cost float64 `json:"cost"`}
	}
	if err := json.Unmarshal(data, &f); err != nil { panic(err) }
	g := &graph.Problem{Kinds: []graph.Kind{{Name: "acc", Count: f.K, Capacity: f.Cap}, {Name: "cpu", Count: 8, Capacity: math.Inf(1), FreeTransfers: true}}}
	at := map[int]int{}
	for i, n := range f.Nodes {
		at[n.ID] = i
		grp := 1000000+i
		if n.Color != nil { grp = *n.Color }
		g.Nodes = append(g.Nodes, graph.Node{Name: n.Name, Time: []float64{n.FPGA, n.CPU}, Size: n.Size, Group: grp})
	}
	for _, e := range f.Edges {
		g.Edges = append(g.Edges, [2]int{at[e.S], at[e.D]})
		g.Nodes[at[e.S]].Transfer = e.Cost
	}
	return &Problem{Problem: g}
}

func TestFiles(t *testing.T) {
	files, _ := filepath.Glob("/work/tmp/latency/files/latency-inputs/*/*.json")
	limit, _ := time.ParseDuration(os.Getenv("LIMIT"))
	for _, f := range files {
		p := readFile(f)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		sol, err := Solve(ctx, p, graph.Settings{Progress: func(v, b float64) { if os.Getenv("V") != "" { fmt.Printf("   %.2fs %.4f %.4f\n", time.Since(begin).Seconds(), v, b) } }})
		cancel()
		if err != nil { t.Error(f, err); continue }
		fmt.Printf("%-40s %9.3f %9.3f %5.2f%% %s %.2fs %s; %s\n", filepath.Base(f), sol.Value, sol.LowerBound, 100*sol.Gap(), sol.Status, time.Since(begin).Seconds(), sol.Method, sol.Bound)
	}
}
