package benchfile

import (
	"math"
	"os"
	"strings"
	"testing"
)

const fixtures = "../../fixtures/workloads/"

func open(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(fixtures + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// near compares with a total of msr-fiddle/piper's files (d7fc8cf), summed apart
// from the parser and printed to four digits.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 5e-4*want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestParsePiper(t *testing.T) {
	t.Parallel()
	const name = "piper/bert32a100.json"
	p, err := parsePiper(name, open(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Nodes) != 37 || len(p.Edges) != 67 || p.MicroBatches != 1920 || p.Bandwidth != 25e9 || p.MaxMemory != 80e9 || p.MaxDevices != 10 {
		t.Errorf("%d nodes, %d edges, %+v", len(p.Nodes), len(p.Edges), *p)
	}
	var time, weights, a, b float64
	for i := range p.Nodes {
		c := p.Nodes[i].Configs[1][0]
		if c.ID != "vanilla" || len(p.Nodes[i].Configs) != 4 {
			t.Errorf("nodes[%d]: %q first of %d degrees", i, c.ID, len(p.Nodes[i].Configs))
		}
		time, weights, a, b = time+c.Time, weights+c.Parameters, a+c.PerMicroBatch, b+c.Fixed
	}
	near(t, "time in s", time, 0.97286)
	near(t, "weights in bytes", weights, 5.879e9)
	near(t, "memory a micro-batch", a, 19.46e9)
	near(t, "fixed memory", b, 11.76e9)
}

// piperText is a small file, with one thing replaced.
func piperText(old, with string) []byte {
	const config = `{"id":"vanilla","timePerSample":1,"parameterSize":2,"memoryUsageA":3,"memoryUsageB":4,`
	const text = `{"maxMemoryPerDevice":10,"maxDevices":2,"bandwidth":5,"mbsInBatch":8,"nodes":[
 {"id":3,"TMPCs":{"1":[` + config + `"syncTimeFw":{},"syncTimeBw":{"7":0}}]}},
 {"id":7,"name":"end","TMPCs":{"1":[` + config + `"syncTimeFw":{"3":1},"syncTimeBw":{}}]}}],
 "edges":[{"sourceId":3,"destId":7,"communicationCost":6}]}`
	return []byte(strings.Replace(text, old, with, 1))
}

func TestParsePiperFaults(t *testing.T) {
	t.Parallel()
	if _, err := parsePiper("f", piperText("", "")); err != nil {
		t.Fatal(err)
	}
	if p, err := parsePiper("f", piperText("mbsInBatch", "maxBatchSize")); err != nil || p.MicroBatches != 8 {
		t.Errorf("the README's name of mbsInBatch: %v", err)
	}
	for _, c := range []struct{ old, with, want string }{
		{`"maxDevices":2`, `"maxDevices":0`, "f: maxDevices: 0 is not"},
		{`"bandwidth":5`, `"bandwidth":0`, "f: bandwidth: 0 is not above 0"},
		{`"bandwidth":5,`, ``, "f: bandwidth: missing"},
		{`"maxMemoryPerDevice":10`, `"maxMemoryPerDevice":-1`, "f: maxMemoryPerDevice: -1 is not"},
		{`"mbsInBatch":8`, `"mbsInBatch":1.5`, "f: mbsInBatch"},
		{`"id":7`, `"id":3`, "f: nodes[1].id: 3 is also the id of nodes[0]"},
		{`"sourceId":3`, `"sourceId":4`, "f: edges[0].sourceId: there is no node 4"},
		{`"destId":7`, `"destId":3`, "f: edges[0]: from node 3 to itself"},
		{`"communicationCost":6`, `"communicationCost":-6`, "f: edges[0].communicationCost: -6 is not"},
		{`"timePerSample":1`, `"timePerSample":1e300`, `f: nodes[0].TMPCs["1"][0].timePerSample: 1e+300 is not`},
		{`"id":"vanilla"`, `"id":""`, `f: nodes[0].TMPCs["1"][0].id`},
		{`"1":[`, `"one":[`, `f: nodes[0].TMPCs["one"]: "one" is not a degree`},
		{`{"7":0}`, `{"8":0}`, `f: nodes[0].TMPCs["1"][0].syncTimeBw["8"]: no edge`},
		{`{"3":1}`, `{}`, `f: nodes[1].TMPCs["1"][0].syncTimeFw: the edge that joins it and node 3 is missing`},
		{`"edges":[`, `"edges":[{"sourceId":3,"destId":7,"communicationCost":6},`, "f: edges[1]: joins the same nodes as edges[0]"},
		{`"maxDevices":2`, `"maxDevices":2,"maxDevices":2`, "f: maxDevices"},
		{`"nodes"`, `"vertices"`, "f: nodes: there are none"},
	} {
		if _, err := parsePiper("f", piperText(c.old, c.with)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want %s", c.with, c.old, err, c.want)
		}
	}
}

func FuzzParsePiper(f *testing.F) {
	f.Add(piperText("", ""))
	f.Add(piperText(`"3":1`, `"3":null`))
	f.Add([]byte(`{"nodes":[{"TMPCs":{"1":[{}]}}],"edges":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parsePiper("f", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f: ") {
				t.Errorf("%v names no place", err)
			}
			return
		}
		for _, e := range p.Edges {
			if min(e.From, e.To) < 0 || max(e.From, e.To) >= len(p.Nodes) || !(e.Bytes >= 0) {
				t.Errorf("edge %+v", e)
			}
		}
		_, _ = p.graph("f")
	})
}
