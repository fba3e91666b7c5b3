//go:build cuda && linux && cgo && amd64

package kernel

import (
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// rule returns the grid and the block of a launch from its sizes.
type rule func(call *Call, sizes []int64) (grid [3]int64, block int64)

// rules are the rules of launches.txt. The head of that file explains each.
var rules = map[string]rule{
	"eights": func(_ *Call, sizes []int64) ([3]int64, int64) {
		return flat(over(sizes[0]*over(sizes[1], 8), 256)), 256
	},
	"row":   func(_ *Call, sizes []int64) ([3]int64, int64) { return byRow(sizes, 512) },
	"row4":  func(_ *Call, sizes []int64) ([3]int64, int64) { return byRow(sizes, 1024) },
	"rows":  func(_ *Call, sizes []int64) ([3]int64, int64) { return flat(sizes[0]), 256 },
	"warps": func(_ *Call, sizes []int64) ([3]int64, int64) { return flat(over(sizes[0], 8)), 256 },
	"norms": func(_ *Call, sizes []int64) ([3]int64, int64) {
		team := min(1024, over(sizes[1], 256)*32)
		return flat(sizes[0]), team * min(8, 1024/team)
	},
	"columns": func(_ *Call, sizes []int64) ([3]int64, int64) { return [3]int64{over(sizes[0], 256), sizes[1], 1}, 256 },
	"each":    func(_ *Call, sizes []int64) ([3]int64, int64) { return flat(over(sizes[0], 128)), 128 },
	"tokens":  func(_ *Call, sizes []int64) ([3]int64, int64) { return flat(over(sizes[0], 32)), 256 },
	"places": func(call *Call, sizes []int64) ([3]int64, int64) {
		if call.matrix("order") == nil {
			return flat(over(call.size("seq", 1), 4)), 256
		}
		return flat(over(sizes[0], 4)), 256
	},
	"parts":  func(_ *Call, sizes []int64) ([3]int64, int64) { return flat(sizes[0]), 512 },
	"one":    func(*Call, []int64) ([3]int64, int64) { return flat(1), 1024 },
	"logits": func(_ *Call, sizes []int64) ([3]int64, int64) { return flat(sizes[0]), 1024 },
	"squares": func(_ *Call, sizes []int64) ([3]int64, int64) {
		return flat(squareBlocks(sizes)), 256
	},
	"join": func(_ *Call, sizes []int64) ([3]int64, int64) { // no launch if there is nothing to join
		return flat(min(1, squareBlocks(sizes)-1)), 256
	},
	"decode": func(call *Call, sizes []int64) ([3]int64, int64) {
		heads, kv := call.size("heads", 0), call.size("kv", 1)
		return [3]int64{over(sizes[0], sizes[1]), kv * over(heads/kv, 8), call.size("sequences", 1)}, 128
	},
}

// counted are the rules whose kernels count groups of eight values in 32 bits.
var counted = map[string]bool{"eights": true, "squares": true, "join": true}

func flat(blocks int64) [3]int64 { return [3]int64{blocks, 1, 1} }

// byRow is a block for each row, with a warp for every so many values.
func byRow(sizes []int64, warp int64) ([3]int64, int64) {
	return flat(sizes[0]), min(1024, max(1, over(sizes[1], warp))*32)
}

func over(value, by int64) int64 { return (value + by - 1) / by }

func squareBlocks(sizes []int64) int64 { return min(512, over(sizes[0]*over(sizes[1], 8), 2048)) }

// shape applies the rule to a call and checks the driver's limits. A launch is left out if its grid
// is 0 in one direction.
func (line *line) shape(call *Call) (driver.Shape, error) {
	sizes := make([]int64, len(line.sizes))
	for i, size := range line.sizes {
		var err error
		if sizes[i], err = size(call); err != nil {
			return driver.Shape{}, err
		}
	}
	if line.counts && sizes[0]*over(sizes[1], 8) > math.MaxInt32 {
		return driver.Shape{}, fmt.Errorf("%d × %d values: there are kernels for less than 2^34", sizes[0], sizes[1])
	}
	grid, block := line.rule(call, sizes)
	shape := driver.Shape{Block: [3]uint32{uint32(block), 1, 1}}
	for i, blocks := range grid {
		if most := []int64{math.MaxInt32, math.MaxUint16, math.MaxUint16}[i]; blocks < 0 || blocks > most {
			return driver.Shape{}, fmt.Errorf("a grid of %d blocks in direction %d: a GPU takes up to %d", blocks, i, most)
		}
		shape.Grid[i] = uint32(blocks)
	}
	return shape, nil
}
