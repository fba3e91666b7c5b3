package devicemap

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// pipelineSection is a plan's section about a diffusion pipeline, in the form that costmodel/phases
// writes.
type pipelineSection struct {
	Class            string         `json:"class"`
	Height           int64          `json:"height"`
	Width            int64          `json:"width"`
	Frames           int64          `json:"frames"`
	Steps            int64          `json:"steps"`
	Batch            int64          `json:"batch"`
	Offload          string         `json:"offload"`
	VAETiling        bool           `json:"vae_tiling"`
	VAESlicing       bool           `json:"vae_slicing"`
	CFGDegree        int64          `json:"cfg_degree"`
	Ulysses          int64          `json:"ulysses"`
	Ring             int64          `json:"ring"`
	PipeFusion       int64          `json:"pipefusion"`
	FullyShardDegree int64          `json:"fully_shard_degree"`
	Layers           []int64        `json:"attn_layer_num_for_pp"`
	Replicas         int64          `json:"replicas"`
	CacheLatents     bool           `json:"cache_latents"`
	After            jsontext.Value `json:"after"`
}

// parsePipeline reads the section from a plan file, so that errors name the field's place in the
// file. It returns nil if there is none.
func parsePipeline(file string, data []byte) (*pipelineSection, error) {
	var whole struct {
		Plan
		RawMap      jsontext.Value   `json:"device_map,omitzero"`
		RawTopology jsontext.Value   `json:"topology,omitzero"`
		Section     *pipelineSection `json:"pipeline,omitzero"`
	}
	err := modelgraph.DecodeJSON(file, data, &whole, true)
	return whole.Section, err
}

// diffusionFault reports phases and a section that are not of one diffusion pipeline on the plan's
// devices.
func (plan *Plan) diffusionFault(section *pipelineSection) *fieldFault {
	switch {
	case section == nil && len(plan.Phases) == 0:
		return nil
	case section == nil:
		return faultOf("pipeline", "missing: a plan with \"phases\" is of a diffusion pipeline")
	case len(plan.Phases) == 0:
		return faultOf("phases", "missing: a plan with a \"pipeline\" has them")
	case len(plan.Stages) > 0:
		return faultOf("stages", "the phases of a diffusion pipeline have none")
	}
	for i := range plan.Phases {
		place := "phases[" + strconv.Itoa(i) + "]"
		if fault := plan.predictionsFault(place+".devices", plan.Phases[i].Devices); fault != nil {
			return fault
		}
		if seconds := plan.Phases[i].Seconds; seconds < 0 {
			return faultOf(place+".seconds", "%v is less than 0", seconds)
		}
	}
	if fault := plan.phasePeaksFault(); fault != nil {
		return fault
	}
	return section.fault(len(plan.Topology.Devices))
}

// phasePeaksFault reports a device whose peak is not its largest peak of all phases.
func (plan *Plan) phasePeaksFault() *fieldFault {
	for device := range plan.Devices {
		var most int64
		for i := range plan.Phases {
			if device < len(plan.Phases[i].Devices) {
				most = max(most, plan.Phases[i].Devices[device].Predicted.PeakAllocatedBytes)
			}
		}
		if peak := plan.Devices[device].Predicted.PeakAllocatedBytes; peak != most {
			return faultOf(fmt.Sprintf("devices[%d].predicted.peak_allocated_bytes", device), "%d, and the largest of its phases is %d", peak, most)
		}
	}
	return nil
}

// offloads lists the values of the section's offload field.
var offloads = []string{"", "model", "sequential", "group"}

// mostSize is the limit of sizes and degrees, as in costmodel/phases.
const mostSize = 1 << 20

func (section *pipelineSection) fault(gpus int) *fieldFault {
	if !quote.IsPythonName(section.Class) {
		return faultOf("pipeline.class", "%q is no class of Python", section.Class)
	}
	if !slices.Contains(offloads, section.Offload) {
		return faultOf("pipeline.offload", "%q is unknown (known: model, sequential, group)", section.Offload)
	}
	for _, size := range []struct {
		field        string
		value, least int64
	}{
		{"height", section.Height, 1},
		{"width", section.Width, 1},
		{"frames", section.Frames, 1},
		{"steps", section.Steps, 1},
		{"batch", section.Batch, 1},
		{"cfg_degree", section.CFGDegree, 0}, // 0: left out, means 1
		{"ulysses", section.Ulysses, 0},
		{"ring", section.Ring, 0},
		{"pipefusion", section.PipeFusion, 0},
		{"fully_shard_degree", section.FullyShardDegree, 0},
		{"replicas", section.Replicas, 0},
	} {
		if size.value < size.least || size.value > mostSize {
			return faultOf("pipeline."+size.field, "%d is not between %d and %d", size.value, size.least, mostSize)
		}
	}
	product := int64(1)
	for _, degree := range []int64{section.CFGDegree, section.Ulysses, section.Ring, section.PipeFusion, section.Replicas} {
		if product *= max(1, degree); product > mostSize {
			break
		}
	}
	switch {
	case product != int64(gpus):
		return faultOf("pipeline", "cfg_degree × ulysses × ring × pipefusion × replicas is %d, and the topology has %s", product, devices(gpus))
	case section.FullyShardDegree > int64(gpus):
		return faultOf("pipeline.fully_shard_degree", "%d is more than the topology's %s", section.FullyShardDegree, devices(gpus))
	case len(section.Layers) > 0 && int64(len(section.Layers)) != section.PipeFusion || slices.ContainsFunc(section.Layers, func(count int64) bool { return count < 1 }):
		return faultOf("pipeline.attn_layer_num_for_pp", "%d is no number of blocks for each of %d stages", section.Layers, section.PipeFusion)
	}
	return nil
}
