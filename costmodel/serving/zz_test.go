package serving

import (
	"fmt"
	"github.com/devmap-dev/devmap/modelgraph/gguf"
	"os"
	"strconv"
	"strings"
	"testing"
)

func he() int64 { n, _ := strconv.ParseInt(os.Getenv("HE"), 10, 64); return n }
func TestZZ(t *testing.T) {
	open := func(p string) (*os.File, int64, error) {
		f, e := os.Open(p)
		if e != nil {
			return nil, 0, e
		}
		i, _ := f.Stat()
		return f, i.Size(), nil
	}
	file, err := gguf.Read(os.Getenv("M"), open)
	if err != nil {
		t.Fatal(err)
	}
	m, err := FromGGUF(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(os.Getenv("ROWS")), "\n") {
		var v [8]int64
		for i, w := range strings.Fields(line)[:6] {
			v[i], _ = strconv.ParseInt(w, 10, 64)
		}
		// c np ub o n pipelined? ts
		ts := strings.Split(strings.Fields(line)[6], ",")
		var split []float32
		for _, x := range ts {
			f, _ := strconv.ParseFloat(x, 32)
			split = append(split, float32(f))
		}
		set := LlamaCPP{HostExperts: he(), Context: v[0], Sequences: v[1], UBatch: v[2], Outputs: v[3], KeyType: strings.Fields(line)[7], ValueType: strings.Fields(line)[7], Pipelined: v[5] == 1}
		host, counts := Layers(m.Units(), split, int(v[4]))
		d, h := set.Devices(m, host, counts)
		for i, x := range d {
			fmt.Printf("RPC%d %d %d %d\n", i, x.Weights, x.Cache, x.Compute)
		}
		fmt.Printf("Host %d %d %d\n", h.Weights, h.Cache, h.Compute)
	}
}
