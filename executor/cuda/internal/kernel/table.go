//go:build cuda && linux && cgo && amd64

package kernel

import (
	"fmt"
	"sync"

	"github.com/devmap-dev/devmap/executor/cuda/internal/source"
)

// Table returns all kernels, by their names in recipes. An error is a line of launches.txt that
// cannot be read.
var Table = sync.OnceValues(func() (map[string]Func, error) {
	launches, err := source.Launches()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"checksum", "finite"} { // they are in no recipe
		delete(launches, name)
	}
	table := make(map[string]Func, len(launches))
	for name, of := range launches {
		lines, err := linesOf(of)
		if err != nil {
			return nil, fmt.Errorf("launches.txt: %s: %w", name, err)
		}
		table[name] = func(call *Call) (Launch, error) { return prepare(lines, call) }
	}
	for name, of := range others {
		table[name] = of
	}
	return table, nil
})

// linesOf parses a kernel's launches.
func linesOf(launches []source.Launch) ([]line, error) {
	lines := make([]line, len(launches))
	for i := range launches {
		var err error
		if lines[i], err = lineOf(&launches[i]); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// others are the kernels that no line of launches.txt launches.
var others = map[string]Func{"gemm": gemm, "attention": attend, "attention_backward": attend}

// prepare packs the lines of a kernel. They are launched one after another.
func prepare(lines []line, call *Call) (Launch, error) {
	var all []*packed
	before := uint32(0)
	for i := range lines {
		launch, err := lines[i].pack(call, before)
		if err != nil {
			return nil, err
		}
		if launch != nil {
			all, before = append(all, launch), launch.shape.Grid[0]
		}
	}
	return func(step *Step) error {
		for _, launch := range all {
			if err := launch.give(step); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
