package phases_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/phases"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// A transformer alone, one picture of 1024 × 1024.
func ExampleOf() {
	graph, err := diffusers.FromConfig("transformer/config.json", []byte(`{"_class_name": "FluxTransformer2DModel", "guidance_embeds": true}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	pipeline := &diffusers.Pipeline{Class: "FluxPipeline", Components: []diffusers.Component{{Name: "transformer", Library: "diffusers", Class: graph.Class, Graph: graph}}}
	plans, err := phases.Of(pipeline, phases.Workload{}, costmodel.Device{CapacityBytes: 80 << 30, WorkspaceBytes: 32 << 20}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, phase := range plans[0].Phases {
		fmt.Printf("%s: %.2f GiB\n", phase.Name, float64(phase.Memory[0].Total())/(1<<30))
	}
	// Output: denoise: 22.66 GiB
}
