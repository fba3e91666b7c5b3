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
		if gpu, err := catalogue.Find(device.Name); err == nil && gpu.CapacityBytes == device.CapacityBytes { // not a size alone
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

// CountsOf returns the units of each device in a map of the graph's units, and a fault of one that
// llama.cpp does not make: it keeps inputs on the host, and places blocks in order.
func CountsOf(graph *modelgraph.Graph, placed devicemap.Map, devices int) ([]int, *devicemap.Fault) {
	counts, last, name, output := make([]int, devices), devicemap.CPU, "", false
	for i := range graph.Units {
		unit, device := graph.Units[i].Name, placed[i]
		fault := func(format string, args ...any) *devicemap.Fault {
			return &devicemap.Fault{Module: unit, Message: costmodel.Messagef(format, args...)}
		}
		block := gguf.Block(unit+".") >= 0
		switch {
		case device < devicemap.CPU:
			return nil, fault("it is on no device of llama.cpp")
		case gguf.Input(unit) && device != devicemap.CPU:
			return nil, fault("it is on device %v, and llama.cpp keeps it on the cpu", device)
		case gguf.Input(unit):
			continue
		case device < last || output && device > last:
			return nil, fault("it is on device %v, after %s on device %v: llama.cpp fills devices in order, and the output is on one", device, name, last)
		}
		last, name = device, unit
		if device >= 0 && (block || !output) {
			counts[device]++
		}
		output = output || !block
	}
	return counts, nil
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

// ModelNotes are what a user must know of a model.
func ModelNotes(model *serving.Model) []string {
	notes := []string{}
	if !model.Judged {
		notes = append(notes, fmt.Sprintf("the buffers of architecture %q were not compared with llama.cpp", model.Architecture))
	}
	if len(model.Unknown) > 0 {
		notes = append(notes, fmt.Sprintf("llama.cpp 0.5.0 has no tensor %q in %q, and refuses a file with one more than it knows (wrong number of tensors)", model.Unknown, model.Architecture))
	}
	return notes
}

// Notes are what a user must know of the answer.
func (answer *Answer) Notes(question *Question) (notes []string) {
	notes = ModelNotes(question.Model)
	if question.Draft != nil {
		notes = append(notes, ModelNotes(question.Draft)...)
	}
	if encoder := question.Encoder; encoder != nil && !encoder.Judged {
		notes = append(notes, fmt.Sprintf("projector %q: its buffer is that of its blocks alone, and was not compared with llama.cpp: it may be twice as large", encoder.Projector))
	} else if encoder != nil && encoder.Larger > 0 {
		notes = append(notes, fmt.Sprintf("the encoder's buffer is that of the image which llama-server starts with: the largest image takes %v more on GPU 0; --reserve leaves room for it, and --image-max-tokens of llama-server limits images", costmodel.Bytes(encoder.Larger)))
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
