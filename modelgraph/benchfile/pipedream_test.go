package benchfile

import (
	"strings"
	"testing"
)

func TestParsePipeDream(t *testing.T) {
	t.Parallel()
	// Line ends (wc -l) of the files of msr-fiddle/pipedream (7db6a1c): the last
	// line has none.
	for name, lines := range map[string]int{"vgg16": 81, "resnet50": 369, "gnmt": 105} {
		name = "pipedream/" + name + ".graph.txt"
		g, err := parsePipeDream(name, open(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(g.Nodes) + len(g.Edges); got != lines+1 {
			t.Errorf("%s: %d nodes and %d edges, want %d in all", name, len(g.Nodes), len(g.Edges), lines+1)
		}
	}
}

const dreamText = "  node1 -- Input0 -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=0.0, parameter_size=0.000\n" +
	"node2 -- LSTM(2048, 1024 (a -- b)) -- forward_compute_time=3.5, backward_compute_time=5, activation_size=[6; 1.5; 2], parameter_size=8 -- stage_id=3\r\n" +
	"\n\tnode1 -- node2\n"

func TestParsePipeDreamLine(t *testing.T) {
	t.Parallel()
	g, err := parsePipeDream("f", []byte(dreamText))
	if err != nil {
		t.Fatal(err)
	}
	want := profiledNode{ID: "node2", Description: "LSTM(2048, 1024 (a -- b))", Forward: 3.5, Backward: 5, Activation: 9.5, Parameters: 8, Stage: 3}
	if g.Nodes[1] != want || g.Nodes[0].ID != "node1" || g.Nodes[0].Stage != -1 || len(g.Edges) != 1 || g.Edges[0] != [2]int{0, 1} {
		t.Errorf("%+v", g)
	}
}

func TestParsePipeDreamFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, with, want string }{
		{"forward_compute_time=3.5", "forward_compute_time=x", `f: line 2: forward_compute_time: "x" is not a number`},
		{"forward_compute_time=3.5", "forward_time=3.5", `f: line 2: "node2 -- LSTM`},
		{"backward_compute_time=5", "backward_compute_time=-5", `f: line 2: backward_compute_time: "-5" is not a number between 0 and 2^53`},
		{"backward_compute_time=5", "backward_compute_time=NaN", `f: line 2: backward_compute_time: "NaN"`},
		{"backward_compute_time=5", "time=5", `f: line 2: "time=5" where backward_compute_time=… belongs`},
		{", parameter_size=8", "", "f: line 2: 3 fields after the description"},
		{"2], ", "2, ", `f: line 2: activation_size: "[6; 1.5; 2" lacks its closing bracket`},
		{"1.5; ", "; ", `f: line 2: activation_size: " " is not a number`},
		{"stage_id=3", "stage_id=-3", `f: line 2: stage_id: "-3" is not a stage`},
		{"node2 -- L", "node1 -- L", `f: line 2: "node1" is already a node, with the description "Input0"`},
		{"node2 -- L", " -- L", "f: line 2: "},
		{"\tnode1 -- node2", "\tnode1 -- node3", `f: line 4: there is no node "node3"`},
		{"\tnode1 -- node2", "\tnode1 node2", `f: line 4: "\tnode1 node2" is not an edge line`},
		{"\tnode1 -- node2", "\tnode2 -- node2", `f: line 4: "node2" reads itself`},
		{dreamText, "\n", "f: no nodes"},
	} {
		text := strings.Replace(dreamText, c.old, c.with, 1)
		if _, err := parsePipeDream("f", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q for %q: %v, want %s", c.with, c.old, err, c.want)
		}
	}
}

func FuzzParsePipeDream(f *testing.F) {
	f.Add([]byte(dreamText))
	f.Add([]byte("\tnode1 -- node2"))
	f.Add([]byte("a --  -- forward_compute_time=[], backward_compute_time=[;], activation_size=0, parameter_size=1e9"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := parsePipeDream("f", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f: ") {
				t.Errorf("%v names no place", err)
			}
			return
		}
		for _, e := range g.Edges {
			if min(e[0], e[1]) < 0 || max(e[0], e[1]) >= len(g.Nodes) {
				t.Errorf("edge %v of %d nodes", e, len(g.Nodes))
			}
		}
		_, _ = g.graph("f")
	})
}
