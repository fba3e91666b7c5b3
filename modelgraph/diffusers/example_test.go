package diffusers_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// FLUX.1-dev's transformer, by its config alone.
func ExampleFromConfig() {
	graph, err := diffusers.FromConfig("transformer/config.json", []byte(`{"_class_name": "FluxTransformer2DModel", "guidance_embeds": true}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(graph.Class, graph.ParamCount())
	// Output: FluxTransformer2DModel 11901408320
}
