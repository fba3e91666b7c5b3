package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeModels writes the models of the matrix into a folder: chains, and graphs
// that are as wide as they can be or have a hundred branches.
func writeModels(dir string) error {
	models := map[string]string{
		"chain2k.json":    declared(2_000, func(int) []int { return nil }),
		"chain10k.json":   declared(10_000, func(int) []int { return nil }),
		"fan5k.json":      declared(5_000, fan(5_000)),
		"branches5k.json": declared(5_000, branches(5_000, 100)),
		"posed5k.json":    benchmark(5_000, fan(5_000)),
		"posed100w.json":  benchmark(5_000, branches(5_000, 100)),
	}
	for name, text := range models {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// fan gives the layers between the first and the last the first as input, and
// the last all of them.
func fan(count int) func(layer int) []int {
	return func(layer int) []int {
		if layer < count-1 {
			return []int{0}
		}
		var all []int
		for before := 1; before < layer; before++ {
			all = append(all, before)
		}
		return all
	}
}

// branches is a graph of chains side by side, which begin at the first layer
// and end in the last.
func branches(count, width int) func(layer int) []int {
	return func(layer int) []int {
		if layer < count-1 {
			return []int{max(0, layer-width)}
		}
		var ends []int
		for before := layer - width; before < layer; before++ {
			ends = append(ends, before)
		}
		return ends
	}
}

// generator makes numbers that look random and are always the same (Park and Miller,
// CACM 31:10, 1988).
type generator int64

func (last *generator) between(low, high int64) int64 {
	*last = *last * 48271 % (1<<31 - 1)
	return low + int64(*last)%(high-low)
}

// declared is a model.json of layers with declared costs.
func declared(count int, inputs func(layer int) []int) string {
	var text strings.Builder
	next := generator(1)
	fmt.Fprintf(&text, `{"format_version":"devmap.model/v1","name":"layers %d","layers":[`, count)
	for layer := range count {
		if layer > 0 {
			text.WriteString(",\n")
		}
		fmt.Fprintf(&text, `{"name":"h.%d",`, layer)
		if from := inputs(layer); layer > 0 && from != nil {
			text.WriteString(`"inputs":[`)
			for i, before := range from {
				fmt.Fprintf(&text, "%s\"h.%d\"", []string{"", ","}[min(i, 1)], before)
			}
			text.WriteString("],")
		}
		fmt.Fprintf(&text, `"declared":{"params_bytes":%d,"activation_bytes":%d,"workspace_bytes":%d,"output_bytes":%d,"forward_seconds":%de-9,"backward_seconds":%de-9}}`,
			next.between(1<<20, 4<<20), next.between(1<<16, 1<<18), next.between(1, 1<<16), next.between(1<<10, 1<<14), next.between(1e5, 4e5), next.between(2e5, 9e5))
	}
	text.WriteString("]}\n")
	return text.String()
}

// benchmark is a problem in the form of msr-fiddle/dnn-partitioning, on 16
// accelerators.
func benchmark(count int, inputs func(layer int) []int) string {
	var nodes, edges []string
	next := generator(1)
	costs := make([]int64, count) // an output has one, wherever it goes
	for node := range count {
		costs[node] = next.between(1, 4)
		nodes = append(nodes, fmt.Sprintf(`{"id":%d,"supportedOnFpga":true,"cpuLatency":%d,"fpgaLatency":%d,"isBackwardNode":0,"colorClass":null,"size":%d}`,
			node, next.between(100, 200), next.between(1, 20), next.between(1, 10)))
		if node == 0 {
			continue
		}
		for _, before := range inputs(node) {
			edges = append(edges, fmt.Sprintf(`{"sourceId":%d,"destId":%d,"cost":%d}`, before, node, costs[before]))
		}
	}
	return fmt.Sprintf(`{"maxSizePerFPGA":100000,"maxFPGAs":16,"maxCPUs":1,"nodes":[%s],"edges":[%s]}`, strings.Join(nodes, ",\n"), strings.Join(edges, ",\n"))
}
