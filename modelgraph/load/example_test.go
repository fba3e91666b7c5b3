package load_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// A path that exists is read by what it is; a name is looked up in the local
// caches and then among the built-in configs.
func ExampleModel() {
	options := load.Options{BuiltIn: fixtures.Models(), Env: func(string) string { return "" }} // no caches
	graph, err := load.Model("llama-3.2-1b", options)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(graph.Class, graph.ParamCount(), len(graph.Units), "units")
	// Output:
	// LlamaForCausalLM 1235814400 20 units
}
