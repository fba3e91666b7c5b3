package benchfile_test

import (
	"fmt"
	"log"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
)

// A profile of PipeDream's, as its profiler writes it.
const profile = `node1 -- Embedding(32320, 1024) -- forward_compute_time=0.5, backward_compute_time=1.0, activation_size=6.0, parameter_size=132.0
node2 -- LSTM(2048, 1024) -- forward_compute_time=3.5, backward_compute_time=5.0, activation_size=8.0, parameter_size=50.0
	node1 -- node2
`

func Example() {
	data := []byte(profile)
	read := benchfile.Reader(data, nil) // nil: the file is no JSON object
	if read == nil {
		log.Fatal("not a file of a public problem")
	}
	file, err := read("gnmt.graph.txt", data)
	if err != nil {
		log.Fatal(err)
	}
	graph, err := benchfile.Graph("gnmt.graph.txt", file)
	if err != nil {
		log.Fatal(err)
	}
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		fmt.Printf("%s reads %v: %.1f ms forward, %d bytes of parameters\n",
			layer.Name, layer.Inputs, 1000*layer.Declared.ForwardSeconds, layer.Declared.ParamsBytes)
	}
	// Output:
	// node1 reads []: 0.5 ms forward, 132 bytes of parameters
	// node2 reads [node1]: 3.5 ms forward, 50 bytes of parameters
}
