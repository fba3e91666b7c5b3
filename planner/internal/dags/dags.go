// Package dags draws wide graphs of nodes from a seed, as problems of placing
// them on devices: six kinds of shape, with node times, sizes and transfers that
// spread as those of layers and operators do.
//
// A problem is a [Line] of a list in fixtures/workloads/random; it is drawn anew
// wherever it is needed and held to the sum that its line states. Solvers are
// tuned on tuning.jsonl and tuning-2.jsonl alone, and judged on trial.jsonl and
// trial-2.jsonl.
package dags

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// Line says what a problem is drawn from.
type Line struct {
	// Mode is "contiguous" or "any": which of the two is asked, and which of
	// them is sure to have an answer.
	Mode string `json:"mode"`
	// Kind is a shape's name: one of [Kinds].
	Kind    string `json:"kind"`
	Nodes   int    `json:"nodes"`
	Devices int    `json:"devices"`
	// Width is the number of towers, of experts, or of nodes in a layer; 0:
	// drawn.
	Width int `json:"width,omitempty"`
	// Capacity is a device's, as a multiple of the sizes' sum over the devices;
	// where no placement was found within it, the least that was found counts.
	Capacity float64 `json:"capacity"`
	// Transfers is the mean time of a transfer, as a multiple of a node's.
	Transfers float64 `json:"transfers"`
	Seed      uint64  `json:"seed"`
	// Sum is the start of the SHA-256 of the problem's file.
	Sum string `json:"sum"`
}

// Name tells the line from others of its list.
func (line *Line) Name() string {
	return fmt.Sprintf("%s/%s-%d-on-%d-%d", line.Mode, line.Kind, line.Nodes, line.Devices, line.Seed)
}

// Kinds are the shapes that can be drawn.
func Kinds() []string {
	return []string{"layered", "residual", "series-parallel", "towers", "u-net", "experts"}
}

// Problem draws the line's problem: times in milliseconds, whole microseconds
// all of them, sizes in whole bytes. It is an error if it is not the one that
// Sum says.
func (line *Line) Problem() (*graph.Problem, error) {
	problem, err := line.Anew()
	if err != nil {
		return nil, err
	}
	if sum := sumOf(problem); sum != line.Sum {
		return nil, fmt.Errorf("%s: the problem drawn has the sum %s, its line says %q", line.Name(), sum, line.Sum)
	}
	return problem, nil
}

// Anew draws the problem of a line that has no sum yet.
func (line *Line) Anew() (*graph.Problem, error) {
	shapes := map[string]func(*sketch, int){
		"layered": (*sketch).layered, "residual": (*sketch).residual, "series-parallel": (*sketch).seriesParallel,
		"towers": (*sketch).towers, "u-net": (*sketch).uNet, "experts": (*sketch).experts,
	}
	shape := shapes[line.Kind]
	if shape == nil || line.Nodes < 2 || line.Devices < 1 {
		return nil, fmt.Errorf("%d nodes of kind %q on %d devices: want 2 or more, one of %q, 1 or more", line.Nodes, line.Kind, line.Devices, Kinds())
	}
	drawing := &sketch{random: rand.New(rand.NewPCG(line.Seed, uint64(line.Nodes))), count: line.Nodes}
	shape(drawing, line.Width)
	problem := drawing.costed(line)
	problem.Kinds = []graph.Kind{{Name: "accelerator", Count: line.Devices}}
	problem.Kinds[0].Capacity = float64(drawing.capacity(problem, line))
	return problem, nil
}

func sumOf(problem *graph.Problem) string {
	hash := sha256.Sum256(File(problem))
	return hex.EncodeToString(hash[:6])
}

// Read reads a list: a line a problem.
func Read(name string, data []byte) ([]Line, error) { return ReadAs[Line](name, data) }

// ReadAs reads a list whose lines say more than a [Line] does.
func ReadAs[Of any](name string, data []byte) ([]Of, error) {
	var lines []Of
	for number, text := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		var line Of
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number+1, err)
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// Draw is a list of each problems a kind and mode. The first of the towers and
// the first two of the series-parallel graphs are wide and on 16 devices.
func Draw(seed uint64, each int) ([]Line, error) {
	random := rand.New(rand.NewPCG(seed, 0))
	var lines []Line
	for _, mode := range []string{"contiguous", "any"} {
		for _, kind := range Kinds() {
			for i := range each {
				line := Line{Mode: mode, Kind: kind, Seed: random.Uint64N(1_000_000)}
				line.sized(random, i, each)
				problem, err := line.Anew()
				if err != nil {
					return nil, err
				}
				line.Sum = sumOf(problem)
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}

// sized draws the i-th of some problems' numbers: the nodes spread evenly, on a
// scale of logarithms, from 50 to 600, six or more to a device.
func (line *Line) sized(random *rand.Rand, i, each int) {
	line.Nodes = between(random, i, each)
	devices := slices.DeleteFunc([]int{2, 3, 4, 6, 8, 12, 16}, func(count int) bool { return 6*count > line.Nodes })
	line.Devices = devices[random.IntN(len(devices))]
	line.Capacity = []float64{1.05, 1.1, 1.2, 1.35, 1.5}[random.IntN(5)]
	line.Transfers = []float64{0.02, 0.1, 0.3, 0.8}[random.IntN(4)]
	switch {
	case line.Kind == "towers" && i == 0:
		line.Nodes, line.Width, line.Devices = 602, 6, 16
	case line.Kind == "series-parallel" && i < 2:
		line.Nodes, line.Devices = []int{260, 400}[i], 16
	}
}
