package boundprice

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/dags"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

func TestZZTwo(t *testing.T) {
	data, _ := os.ReadFile("/work/tmp/any-random/two.jsonl")
	lines, _ := dags.Read("x", data)
	rows, _ := os.ReadFile("/work/tmp/any-random/rows_two.jsonl")
	type row struct {
		Problem, Status string
		Place           []int
		Bound           float64
	}
	known := map[string]row{}
	for _, text := range bytes.Split(bytes.TrimSpace(rows), []byte("\n")) {
		var one row
		json.Unmarshal(text, &one)
		known[one.Problem] = one
	}
	ctx := context.Background()
	for _, line := range lines {
		one, ok := known[line.Name()]
		if !ok {
			continue
		}
		p, err := line.Problem()
		if err != nil {
			t.Fatal(err)
		}
		_, value, _ := p.Score(one.Place)
		in := graph.NewInstance(p, p.Groups())
		nets := netlist.New(in)
		begin := time.Now()
		h := NewHalves(ctx, nets)
		place := make([]int32, len(in.Nodes))
		for node, d := range one.Place {
			place[in.ItemOf[node]] = int32(d)
		}
		fmt.Printf("%s cap %.2f value %.3f bound %.3f %s T/2 %.3f states %d left %d of %d wires, layout %.1fs\n", line.Name(), line.Capacity, value, one.Bound, one.Status, h.whole()/2, h.plain.total, len(h.plain.Left), len(nets.Wires), time.Since(begin).Seconds())
		for {
			better, proof := h.Below(ctx, place)
			if better != nil {
				place = better
				_, value, err := p.Score(in.Places(place))
				fmt.Printf("    %.3f %v  %.1fs made %d %d\n", value, err, time.Since(begin).Seconds(), h.plain.made, h.sized.made)
				continue
			}
			fmt.Printf("    proof %v %.1fs made %d %d\n", proof != nil, time.Since(begin).Seconds(), h.plain.made, h.sized.made)
			if proof != nil {
				begin = time.Now()
				fmt.Printf("    check %v %.1fs perbyte %v unsized %v\n", boundcheck.Check(ctx, p, proof), time.Since(begin).Seconds(), proof.Kinds[0].PerByte, proof.Kinds[0].Unsized)
			}
			break
		}
	}
}
