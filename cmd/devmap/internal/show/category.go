package show

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// category is one part of a device's peak: its name, its heading, and its position among the
// columns that a narrow table drops.
type category struct {
	name, heading string
	spare         int
	of            func(*devicemap.Predicted) int64
}

var categories = []category{
	{"weights", "Weights", 0, func(predicted *devicemap.Predicted) int64 { return predicted.ParamsBytes }},
	{"gradients", "Grads", 3, func(predicted *devicemap.Predicted) int64 { return predicted.GradsBytes }},
	{"optimizer", "Optim", 5, func(predicted *devicemap.Predicted) int64 { return predicted.OptimizerStateBytes }},
	{"activations", "Activ", 6, func(predicted *devicemap.Predicted) int64 { return predicted.ActivationsBytes }},
	{"KV cache", "KV", 4, func(predicted *devicemap.Predicted) int64 { return predicted.KVCacheBytes }},
	{"workspace", "Work", 1, func(predicted *devicemap.Predicted) int64 { return predicted.WorkspaceBytes }},
	{"communication", "Comm", 2, func(predicted *devicemap.Predicted) int64 { return predicted.CommBuffersBytes }},
}

// parts lists the categories at a device's peak, and what is outside the allocator.
func parts(predicted *devicemap.Predicted, mode costmodel.Mode) string {
	var out []string
	for i := range categories {
		if b := categories[i].of(predicted); b > 0 {
			out = append(out, fmt.Sprintf("%s %v", categories[i].name, costmodel.Bytes(b)))
		}
	}
	if predicted.OverheadBytes > 0 {
		out = append(out, fmt.Sprintf("%s %v", Overhead(mode), costmodel.Bytes(predicted.OverheadBytes)))
	}
	return strings.Join(out, ", ")
}
