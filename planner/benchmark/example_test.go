package benchmark_test

import (
	"context"
	"fmt"
	"log"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/benchmark"
)

// Three layers of 3, 6 and 3 ms in a row on two accelerators, with free transfers. In contiguous
// parts one device works for 9 ms.
const problem = `{"maxSizePerFPGA": 8, "maxFPGAs": 2, "maxCPUs": 0, "nodes": [
	{"id": 0, "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 3, "isBackwardNode": 0, "size": 2},
	{"id": 1, "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 6, "isBackwardNode": 0, "size": 2},
	{"id": 2, "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 3, "isBackwardNode": 0, "size": 2}],
	"edges": [{"sourceId": 0, "destId": 1, "cost": 0}, {"sourceId": 1, "destId": 2, "cost": 0}]}`

func Example() {
	data := []byte(problem)
	read := benchfile.Reader(data, func(member string) bool { return member == "maxFPGAs" })
	file, err := read("problem.json", data)
	if err != nil {
		log.Fatal(err)
	}
	answer, err := benchmark.Solve(context.Background(), file, benchmark.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %.0f %s, nothing is below %.0f: %s\n", answer.Form, answer.Value, answer.Unit, answer.LowerBound, answer.Status)
	// Output:
	// contiguous: 9 ms, nothing is below 9: optimal
}
