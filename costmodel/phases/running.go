package phases

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/forward"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// running makes the phases of a pipeline, and the steps after them.
type running struct{ residency }

// residency is the memory of each GPU of a deployment.
type residency struct{ deployment }

// deployment is a pipeline under a workload.
type deployment struct {
	class    string // the pipeline's
	lean     bool   // sharded as --memory_efficient_sharding does
	wrapped  bool   // by xDiT's own pipeline class, if its runner takes diffusers'
	work     Workload
	rule     rule
	gpu      costmodel.Device
	all      []*diffusers.Component
	encoders []*diffusers.Component
	denoiser *diffusers.Component
	decoder  *diffusers.Component
}

// add sorts a component by its name.
func (run *deployment) add(component *diffusers.Component) {
	run.all = append(run.all, component)
	switch component.Name {
	case "transformer", "unet":
		run.denoiser = component
	case "transformer_2": // Wan 2.2's second expert takes the later steps
	case "vae":
		if forward.Known(component.Graph.Class) { // else its weights alone are counted
			run.decoder = component
		}
	default:
		run.encoders = append(run.encoders, component)
	}
}

// width is the bytes of a value.
func width(graph *modelgraph.Graph) int64 { return max(1, graph.DType.Bits()/8) }

// bytes is the width of what goes between the components.
func (run *deployment) bytes() int64 {
	if run.denoiser == nil { // a component alone
		return 2
	}
	return width(run.denoiser.Graph)
}

// heads is the number of heads of the denoiser's first attention.
func (run *deployment) heads() int64 {
	for i := range run.denoiser.Graph.Layers {
		if op, ok := run.denoiser.Graph.Layers[i].Op.(modelgraph.Attention); ok {
			return op.Heads
		}
	}
	return 1
}

// roofline is the time of work at the GPU's rates: products, or traffic.
func (run *deployment) roofline(cost forward.Cost) float64 {
	if run.gpu.FLOPS == 0 {
		return 0
	}
	return max(cost.FLOPs/run.gpu.FLOPS, cost.Traffic/cmp.Or(run.gpu.BytesPerSecond, 1e30))
}

// headWidth is the width of the first attention's heads.
func headWidth(graph *modelgraph.Graph) int64 {
	for i := range graph.Layers {
		if op, ok := graph.Layers[i].Op.(modelgraph.Attention); ok {
			return op.HeadDim
		}
	}
	return 0
}
