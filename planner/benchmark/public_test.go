package benchmark

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// allFiles reports that PUBLIC=all asks for files that take seconds, too.
func allFiles() bool { return os.Getenv("PUBLIC") == "all" }

// read parses a file of fixtures/workloads of a known kind.
func read[T benchfile.File](t *testing.T, name string) T {
	t.Helper()
	path := filepath.Join("..", "..", "fixtures", "workloads", filepath.FromSlash(name))
	data := fixtures.Must(os.ReadFile(path))(t)
	var has func(member string) bool // nil for a profile, which is not JSON
	var top map[string]jsontext.Value
	if json.Unmarshal(data, &top) == nil {
		has = func(member string) bool { _, ok := top[member]; return ok }
	}
	file := fixtures.Must(benchfile.Reader(data, has)(path, data))(t)
	problem, ok := file.(T)
	if !ok {
		t.Fatalf("it is a %T", file)
	}
	return problem
}

// dnnFiles lists the least largest loads of contiguous parts in ms, which are proved. Published is
// the result of the authors' exact search (msr-fiddle/dnn-partitioning, throughput-dp/dp.cpp: from
// its README or a run). It is 0 if that search does not finish or did not run.
var dnnFiles = []struct {
	name             string
	value, published float64
	slow             bool
}{
	{"throughput/LayerGraphs/bert24_inference", 17.7899, 17.7899, false},
	{"throughput/LayerGraphs/bert24_training", 41.7458, 41.7458, false},
	{"throughput/LayerGraphs/gnmt_inference", 32.9107, 32.9107, true},
	{"throughput/LayerGraphs/gnmt_training", 107.0044, 107.004, true},
	{"throughput/LayerGraphs/inceptionv3_inference", 51.5519, 0, false},
	{"throughput/LayerGraphs/resnet50_inference", 33.7747, 33.7747, false},
	{"throughput/OperatorGraphs/bert_l-12_inference", 147.4780, 147.478, false},
	{"throughput/OperatorGraphs/bert_l-3_inference", 27.9186, 27.9186, false},
	{"throughput/OperatorGraphs/bert_l-3_training", 65.3031, 65.3031, false},
	{"throughput/OperatorGraphs/bert_l-6_training", 72.8650, 72.865, false},
	{"latency/LayerGraphs/bert24_inference", 22.0351, 22.035, false},
	{"latency/LayerGraphs/gnmt_inference", 44.8965, 0, true},
	{"latency/LayerGraphs/inceptionv3_inference", 162.8200, 0, false},
	{"latency/LayerGraphs/resnet50_inference", 110.0140, 0, false},
	{"latency/OperatorGraphs/bert_l-12_inference", 97.2637, 0, false},
	{"latency/OperatorGraphs/bert_l-3_inference", 189.1422, 189.142, false},
	{"latency/OperatorGraphs/bert_l-6_inference", 189.1422, 189.142, false},
	{"latency/OperatorGraphs/resnet50_inference", 107.7783, 0, false},
}

// TestPublicFiles checks the least loads of the dnn-partitioning files and their proofs. Its table
// is in docs/benchmarks/speed.md:
//
//	PUBLIC=all go test -count=1 -v -run TestPublicFiles ./planner/benchmark
func TestPublicFiles(t *testing.T) {
	for _, want := range dnnFiles {
		t.Run(want.name, func(t *testing.T) {
			if want.slow && !allFiles() {
				t.Skip("takes seconds: PUBLIC=all")
			}
			problem := graphProblem(read[*benchfile.DNNPartitioning](t, "dnn-partitioning/"+want.name+".json"))
			begin := time.Now()
			got := fixtures.Must(downset.Solve(context.Background(), problem, nil))(t)
			t.Logf("%.4f ms, bound %.4f (%s), published %v; %.2f s; %s", got.Value, got.LowerBound, got.Status, want.published, time.Since(begin).Seconds(), got.Bound)
			const digits = 1e-6
			if got.Value > want.value*(1+5*digits) || got.Value < want.value*(1-5*digits) || !got.Optimal() || want.published > 0 && got.Value > want.published*(1+10*digits) {
				t.Errorf("largest load %v, bound %v (%s), optimal %v; want %v", got.Value, got.LowerBound, got.Bound, got.Optimal(), want.value)
			}
			if _, largest, err := problem.Score(got.Place); err != nil || largest != got.Value {
				t.Errorf("the score is %v, %v", largest, err)
			}
		})
	}
}

// gib is the unit of memory and of bandwidth in the published figures.
const gib = 1 << 30

// piperGrid lists the problems of the authors' figures (plots, runResnet, runGNMT), and 1,024 and
// 2,048 devices for BERT-32 and more memory for GNMT. Theirs is the time of their program's plan
// (msr-fiddle/piper d7fc8cf, runDP, at 25 GiB/s). It is 0 if no plan fits, and −1 if the program
// took more than 365 or 450 s.
var piperGrid = []struct {
	file    string
	devices int
	memory  float64 // GiB
	theirs  float64 // BERT-32 in s, the others in ms
}{
	{"bert32a100", 8, 1, 0},
	{"bert32a100", 32, 1, 0},
	{"bert32a100", 64, 1, 0},
	{"bert32a100", 128, 1, 0.03887175},
	{"bert32a100", 512, 1, 0.00878004035815},
	{"bert32a100", 1024, 1, 0.00439173794768},
	{"bert32a100", 2048, 1, 0.00219750340912},
	{"bert32a100", 8, 2, 0},
	{"bert32a100", 32, 2, 0.0665495},
	{"bert32a100", 64, 2, 0.0320300812349},
	{"bert32a100", 128, 2, 0.0151464078563},
	{"bert32a100", 512, 2, 0.00366752625994},
	{"bert32a100", 1024, 2, 0.0018406315222},
	{"bert32a100", 2048, 2, 0.00092718415333},
	{"bert32a100", 8, 8, 0.16585575},
	{"bert32a100", 32, 8, 0.0415154504417},
	{"bert32a100", 64, 8, 0.0202005502945},
	{"bert32a100", 128, 8, 0.0101208803239},
	{"bert32a100", 512, 8, 0.00256112784601},
	{"bert32a100", 1024, 8, 0.00130317951636},
	{"bert32a100", 2048, 8, 0.000703591184443},
	{"bert32a100", 8, 80, 0.12200726935},
	{"bert32a100", 32, 80, 0.0308440482088},
	{"bert32a100", 64, 80, 0.0156501780186},
	{"bert32a100", 128, 80, 0.00805324292352},
	{"bert32a100", 512, 80, 0.00227252010888},
	{"bert32a100", 1024, 80, 0.00115875734277},
	{"bert32a100", 2048, 80, 0.000663712740281},

	{"resnet", 8, 4, 73.4932860001},
	{"resnet", 8, 8, 63.4335366048},
	{"resnet", 8, 16, 58.5577099763},
	{"resnet", 16, 1.5, 0},
	{"resnet", 16, 2, 76.5213125},
	{"resnet", 16, 4, 35.3334375091},
	{"resnet", 16, 8, 31.6343942681},
	{"resnet", 16, 16, 29.2788559739},
	{"resnet", 32, 1.5, 50.9771953125},
	{"resnet", 32, 2, 24.6258985217},
	{"resnet", 32, 4, 17.6239584901},
	{"resnet", 32, 8, 15.7580260655},
	{"resnet", 32, 16, 14.6394289727},
	{"resnet", 64, 1, 0},
	{"resnet", 64, 1.5, 16.992140625},
	{"resnet", 64, 2, 11.3337902938},
	{"resnet", 64, 4, 8.66677284849},
	{"resnet", 64, 8, 7.87901305062},
	{"resnet", 64, 16, 7.31971547209},
	{"resnet", 128, 1, 19.856328551},
	{"resnet", 128, 1.5, 7.0249251386},
	{"resnet", 128, 2, 5.40607819003},
	{"resnet", 128, 4, 4.30571355978},
	{"resnet", 128, 8, 3.89450408727},
	{"resnet", 128, 16, 3.6598587218},

	{"gnmt", 2, 2.5, 263.354289062},
	{"gnmt", 2, 3.5, 260.226823306},
	{"gnmt", 4, 1.2, 137.130992188},
	{"gnmt", 4, 2.5, 131.677341323},
	{"gnmt", 8, 0.6, 0},
	{"gnmt", 8, 1.2, 68.5655639758},
	{"gnmt", 8, 2.4, 65.8388674535},
	{"gnmt", 16, 0.3, -1},
	{"gnmt", 16, 0.6, -1},
	{"gnmt", 16, 1.2, -1},
	{"gnmt", 32, 0.3, -1},
	{"gnmt", 32, 0.8, -1},
	{"gnmt", 64, 0.3, -1},
	{"gnmt", 64, 0.8, -1},
}

// quick reports the rows that run without PUBLIC=all.
func quick(file string, devices int) bool {
	return file == "bert32a100" && devices <= 128 || file == "resnet" && devices <= 8 || file == "gnmt" && devices <= 2
}

// TestPiperGrid: with replicated and tensor-parallel stages, the time is at most that of the plan
// of Piper's own program. Each value is proved.
func TestPiperGrid(t *testing.T) {
	below := 0
	for _, row := range piperGrid {
		if !allFiles() && !quick(row.file, row.devices) {
			continue
		}
		name := fmt.Sprintf("%s on %d of %v GiB", row.file, row.devices, row.memory)
		problem := fixtures.Must(piperProblem(read[*benchfile.Piper](t, "piper/"+row.file+".json"), row.devices, row.memory*gib, 25*gib, 0, 0))(t)
		begin := time.Now()
		got, err := stages.Solve(context.Background(), problem, nil)
		seconds := time.Since(begin).Seconds()
		var none *stages.InfeasibleError
		switch {
		case errors.As(err, &none):
			if !none.Proved || row.theirs > 0 {
				t.Errorf("%s: %v; Piper %v", name, err, row.theirs)
			}
			t.Logf("%s: %v; Piper %v; %.2f s", name, err, row.theirs, seconds)
			continue
		case err != nil:
			t.Fatal(err)
		}
		t.Logf("%s: %.8g (%s), Piper %v; %.2f s", name, got.Value, got.Status, row.theirs, seconds)
		const digits = 1e-9
		if !got.Optimal() || row.theirs > 0 && got.Value > row.theirs*(1+digits) {
			t.Errorf("%s: %v, bound %v; Piper %v", name, got.Value, got.LowerBound, row.theirs)
		}
		if row.theirs > 0 && got.Value < row.theirs*(1-digits) {
			below++
		}
		if _, largest, err := problem.Score(&got.Plan); err != nil || largest != got.Value {
			t.Errorf("%s: scored %v (%v), said %v", name, largest, err, got.Value)
		}
	}
	t.Logf("%d below Piper's", below)
}

// straightPipelines lists the times of Piper's program without data and tensor parallelism, in
// steps of 1e-6 s. PipeDream's are from optimizer_graph_hierarchical.py --straight_pipeline, in
// steps of 1e-5 s.
var straightPipelines = []struct {
	file    string
	devices int
	memory  float64 // GiB
	time    float64 // s
}{
	{"piper/bert32a100.json", 8, 8, 0.165856},
	{"piper/bert32a100.json", 16, 8, 0.100427},
	{"piper/bert32a100.json", 32, 8, 0.073906},
	{"piper/bert32a100.json", 8, 80, 0.164516},
	{"piper/bert32a100.json", 16, 80, 0.099749},
	{"piper/bert32a100.json", 32, 80, 0.073906},
	{"pipedream/vgg16.graph.txt", 4, 0, 0.21645},
	{"pipedream/vgg16.graph.txt", 8, 0, 0.15953},
	{"pipedream/resnet50.graph.txt", 4, 0, 0.11150},
	{"pipedream/gnmt.graph.txt", 4, 0, 0.02587},
}

// TestStraightPipelines compares stages of one device each with Piper's and PipeDream's times, and
// checks each proof.
func TestStraightPipelines(t *testing.T) {
	for _, want := range straightPipelines {
		t.Run(fmt.Sprintf("%s on %d of %v GiB", want.file, want.devices, want.memory), func(t *testing.T) {
			var problem *stages.Problem
			digits := 1e-6
			if strings.HasPrefix(want.file, "piper/") {
				var err error
				if problem, err = piperProblem(read[*benchfile.Piper](t, want.file), want.devices, want.memory*gib, 25*gib, 1, 1); err != nil {
					t.Fatal(err)
				}
			} else {
				problem, digits = pipeDreamProblem(t, read[benchfile.File](t, want.file), want.devices), 1e-5
			}
			begin := time.Now()
			got := fixtures.Must(stages.Solve(context.Background(), problem, nil))(t)
			t.Logf("%.6f s (%s), published %v; %.3f s", got.Value, got.Status, want.time, time.Since(begin).Seconds())
			if _, largest, err := problem.Score(&got.Plan); err != nil || largest != got.Value {
				t.Errorf("scored %v (%v), said %v", largest, err, got.Value)
			}
			if got.Value > want.time+digits || got.Value < want.time-2*digits || !got.Optimal() {
				t.Errorf("slowest stage %v s (optimal %v), want %v", got.Value, got.Optimal(), want.time)
			}
		})
	}
}

// pipeDreamProblem returns the problem of PipeDream's straight pipeline for a profile. The value is
// the slowest stage's forward and backward in seconds, without transfers and without a limit on
// memory. As in PipeDream, the graph's inputs ("Input0" and so on) cost nothing: no planner places
// them (optimizer_graph_hierarchical.py, main).
func pipeDreamProblem(t *testing.T, file benchfile.File, devices int) *stages.Problem {
	t.Helper()
	graph := fixtures.Must(benchfile.Graph("profile", file))(t)
	problem := &stages.Problem{Devices: devices, Replicas: devices, Data: []int{1}, Tensor: []int{1}, Capacity: math.Inf(1)}
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		cost := layer.Declared
		choice := stages.Choice{Time: cost.ForwardSeconds + cost.BackwardSeconds, InFlight: float64(cost.ActivationBytes), Fixed: float64(cost.ParamsBytes)}
		if len(layer.InputLayers) == 0 {
			choice = stages.Choice{}
		}
		problem.Nodes = append(problem.Nodes, stages.Node{Name: layer.Name, Choices: [][]stages.Choice{{choice}}})
		for _, from := range layer.InputLayers {
			problem.Edges = append(problem.Edges, stages.Edge{From: from, To: i, Send: []float64{0}, Receive: []float64{0}})
		}
	}
	return problem
}
