package planner_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestTorchtitanDegrees predicts ranks of torchtitan's Trainer with tensor, context and pipeline
// parallelism: 23 under torch's fake process group, and eight each on two and on four GPUs by
// devmap's run.sh (fixtures/measured/titan_degrees_h200.jsonl).
func TestTorchtitanDegrees(t *testing.T) {
	file, err := os.Open("../fixtures/measured/titan_degrees_h200.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var within, rows int
	for lines := bufio.NewScanner(file); lines.Scan(); rows++ {
		var row struct {
			Case   string
			Peak   int64 `json:"peak_allocated"`
			Losses []float64
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		predicted := titanRow(t, row.Case)
		off := 100 * (float64(predicted)/float64(row.Peak) - 1)
		t.Logf("%+.3f %% %s", off, row.Case)
		if math.Abs(off) > .5 {
			t.Errorf("%s: %d predicted, %d measured, %+.3f %%", row.Case, predicted, row.Peak, off)
		}
		if math.Abs(off) < .1 {
			within++
		}
	}
	if rows != 39 || within < 24 {
		t.Errorf("%d rows, %d within 0.1 %%", rows, within)
	}
}

// titanRow returns the predicted bytes of a row PROGRAM:MODEL@LAYERS:BATCH:SEQ:OPTIONS:WORLD:RANK
// of measured/how/measure_torch_native.py.
func titanRow(t *testing.T, name string) int64 {
	t.Helper()
	parts := strings.Split(name, ":")
	number := func(text string) int64 {
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	model, layers, _ := strings.Cut(parts[1], "@")
	config, err := os.ReadFile("../fixtures/models/" + model + "/config.json")
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(config, &fields); err != nil {
		t.Fatal(err)
	}
	if layers != "" {
		fields["num_hidden_layers"] = number(layers)
	}
	if config, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	graph := fixtures.Must(hf.FromConfig("config.json", config))(t)
	work := costmodel.Workload{
		Mode: costmodel.Train, Runtime: "torchtitan", Strategy: costmodel.Pipeline, Precision: costmodel.BF16Mixed, Recompute: "selective", Loss: "chunked",
		Batch: number(parts[2]), Seq: number(parts[3]), TP: 1, CP: 1, PP: 1,
	}
	var cuts []int64
	for _, option := range strings.Split(parts[4], ",") {
		switch {
		case option == "ac":
			work.Recompute = costmodel.RecomputeFull
		case option == "noac":
			work.Recompute = costmodel.RecomputeNone
		case option == "ce":
			work.Loss = ""
		case strings.HasPrefix(option, "tp"):
			work.TP = costmodel.Degree(number(option[2:]))
		case strings.HasPrefix(option, "cp"):
			work.CP = costmodel.Degree(number(option[2:]))
		case strings.HasPrefix(option, "pp"):
			work.PP, work.MicroBatches = costmodel.Degree(number(option[2:])), work.Batch
		case strings.HasPrefix(option, "ga"):
			work.MicroBatches = number(option[2:])
			work.Batch *= work.MicroBatches
		case strings.HasPrefix(option, "cut"):
			cuts = append(cuts, number(option[3:]))
		}
	}
	world := number(parts[5])
	work.World, work.DP = world, costmodel.Degree(world)/(work.TP*work.CP*work.PP)
	gpu := fixtures.Must(catalogue.Find("h200-141gb"))(t)
	topology := &costmodel.Topology{}
	for range world {
		topology.Devices = append(topology.Devices, gpu.Device(costmodel.Train))
	}
	problem, err := planner.Problem{Graph: graph, Topology: topology, Workload: work}.Resolved()
	if err != nil {
		t.Fatal(name, err)
	}
	placed, stage := make(devicemap.Map, len(graph.Units)), int64(0)
	for unit := range graph.Units {
		for _, cut := range cuts {
			if graph.Units[unit].Name == fmt.Sprintf("model.layers.%d", cut) {
				stage++
			}
		}
		placed[unit] = devicemap.Device(stage * world / work.PP.Count())
	}
	return devicemap.Predict(problem.Costs, topology, placed)[number(parts[6])].Predicted.PeakAllocatedBytes
}
