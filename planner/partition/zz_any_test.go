package partition

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestZZAny(t *testing.T) {
	for _, f := range throwFiles(t) {
		p := throwRead(t, f)
		c0 := cpu()
		lim, _ := time.ParseDuration(os.Getenv("LIM"))
		sol, err := Any(context.Background(), p, Settings{TimeLimit: lim, Progress: func(a, b float64) {
			if os.Getenv("V") != "" {
				t.Logf("   %v: %v %v", cpu()-c0, a, b)
			}
		}})
		name := filepath.Base(filepath.Dir(filepath.Dir(f)))[:3] + "/" + filepath.Base(filepath.Dir(f))[:1] + "/" + filepath.Base(f)
		if err != nil {
			t.Error(name, err)
			continue
		}
		t.Logf("RES %s %.4f bound %.4f gap %.2f%% opt %v %v %s | %.50s", name, sol.Largest, sol.LowerBound, 100*sol.Gap(), sol.Optimal, (cpu() - c0).Round(time.Millisecond), throwJudge(t, f, p, sol), sol.Bound)
	}
}

func throwJudge(t testing.TB, f string, p *Problem, sol *Solution) string {
	b, _ := os.ReadFile(f)
	var d struct{ Nodes []struct{ ID int } }
	json.Unmarshal(b, &d)
	type m struct {
		Load  float64 `json:"load"`
		Nodes []int   `json:"nodes"`
	}
	var r struct {
		CPUs  []m `json:"cpus"`
		FPGAs []m `json:"fpgas"`
	}
	r.FPGAs = make([]m, p.Kinds[0].Count)
	r.CPUs = make([]m, max(1, p.Kinds[1].Count))
	for i := range r.FPGAs {
		r.FPGAs[i].Nodes = []int{}
	}
	for i := range r.CPUs {
		r.CPUs[i].Nodes = []int{}
	}
	for v, dev := range sol.Place {
		if dev < len(r.FPGAs) {
			r.FPGAs[dev].Nodes = append(r.FPGAs[dev].Nodes, d.Nodes[v].ID)
		} else {
			r.CPUs[dev-len(r.FPGAs)].Nodes = append(r.CPUs[dev-len(r.FPGAs)].Nodes, d.Nodes[v].ID)
		}
	}
	out, _ := json.Marshal(r)
	tmp := filepath.Join(t.TempDir(), "out.json")
	os.WriteFile(tmp, out, 0o644)
	c := exec.Command("/tmp/auth/dnn-partitioning/dp", "-expert", tmp)
	in, _ := os.Open(f)
	c.Stdin = in
	o, _ := c.CombinedOutput()
	var keep []string
	for _, l := range strings.Split(string(o), "\n") {
		if strings.Contains(l, "max-load") || strings.Contains(l, "FAIL") || strings.Contains(l, "memory") {
			keep = append(keep, l)
		}
	}
	return strings.Join(keep, "; ")
}
