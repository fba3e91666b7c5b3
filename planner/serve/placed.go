package serve

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/serving"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/gguf"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// margin is what llama.cpp's --fit leaves free on each device for cuBLAS, CUDA's pools and graphs
// (common/common.h: fit_params_target).
const margin = 1 << 30

// contexts are CUDA's contexts of llama.cpp by compute capability, in bytes. A context is the total
// less the free memory before a model is loaded. Sources: ollama#17482 for an RTX 3090 and an RTX
// 4090, fixtures/measured/llamacpp_h200.jsonl.gz for an H200. Other GPUs get the largest.
var contexts = map[string]int64{"8.6": 264 << 20, "8.9": 472 << 20, "9.0": largestContext}

const largestContext = 552402944

// DevicesOf are the devices of a topology.
func DevicesOf(topology *costmodel.Topology) []Device {
	devices := make([]Device, len(topology.Devices))
	for i := range topology.Devices {
		device := &topology.Devices[i]
		context, known := contexts[device.ComputeCapability]
		if !known {
			context = largestContext
		}
		devices[i] = Device{Budget: device.Budget(), Context: context, Margin: margin}
		if gpu, err := catalogue.Find(device.Name); err == nil {
			devices[i].Bandwidth = gpu.BytesPerSecond
		}
	}
	return devices
}

// SettingsOf are the engine's settings of a workload.
func SettingsOf(workload *costmodel.Workload) serving.LlamaCPP {
	drafts := int64(0)
	if workload.Draft != "" {
		drafts = 3 // a draft's tokens at a time (common/common.h: n_max)
	}
	return serving.LlamaCPP{
		Context: workload.Context, Sequences: workload.Sequences, KeyType: workload.KVType, ValueType: workload.KVType,
		UBatch: workload.UBatch, Outputs: workload.Sequences * (1 + drafts), HostExperts: workload.HostExperts,
	}
}

// Placed is the answer as a map of the graph's units.
func (answer *Answer) Placed(graph *modelgraph.Graph) devicemap.Map {
	var of []devicemap.Device // of blocks, and last of the output
	for range answer.Set.HostBlocks {
		of = append(of, devicemap.CPU)
	}
	for device, count := range answer.Counts {
		for range count {
			of = append(of, devicemap.Device(device))
		}
	}
	placed := make(devicemap.Map, len(graph.Units))
	for i := range graph.Units {
		name := graph.Units[i].Name
		switch number := gguf.Block(name + "."); {
		case number >= 0 && int(number) < len(of)-1:
			placed[i] = of[number]
		case gguf.Input(name):
			placed[i] = devicemap.CPU
		default:
			placed[i] = of[len(of)-1]
		}
	}
	return placed
}

// Predictions are what each device holds.
func (answer *Answer) Predictions(question *Question, topology *costmodel.Topology) []devicemap.Prediction {
	predictions := make([]devicemap.Prediction, len(answer.Devices))
	for i, memory := range answer.Devices {
		slack := int64(0)
		if i == 0 && question.Encoder != nil {
			slack = question.Encoder.Larger
		}
		predictions[i] = devicemap.Serving(i, &topology.Devices[i], memory.Weights, memory.Cache, memory.Compute, question.Devices[i].Overhead(int(memory.Weights)), slack)
		predictions[i].Units = answer.Counts[i]
	}
	return predictions
}

// Notes are what a user must know of the answer.
func (answer *Answer) Notes(question *Question) (notes []string) {
	if !question.Model.Judged {
		notes = append(notes, fmt.Sprintf("the buffers of architecture %q were not compared with llama.cpp", question.Model.Architecture))
	}
	if trained := question.Model.Trained; trained > 0 && answer.Set.Context > trained {
		notes = append(notes, fmt.Sprintf("the model was trained for %d tokens, and the context has %d", trained, answer.Set.Context))
	}
	if answer.InTurn {
		notes = append(notes, "devices work on a prompt one after another, which is slower: copies of their inputs would take the place of some of the context")
	}
	if count := answer.Set.HostBlocks; count > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d blocks and their cache are on the host, whose memory is not compared: its processor computes them", count, len(question.Model.Blocks)))
	}
	if answer.Set.HostExperts > 0 {
		notes = append(notes, fmt.Sprintf("experts of the first %d blocks are on the host", answer.Set.HostExperts))
	}
	return notes
}
