package show

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// category is one part of a device's peak: its name and its heading, the
// letter and colour of its stretch in the bar.
type category struct {
	name, heading string
	letter        rune
	colour        text.Color
	of            func(*devicemap.Predicted) int64
}

var categories = []category{
	{"weights", "weights", 'w', text.FgBlue, func(predicted *devicemap.Predicted) int64 { return predicted.ParamsBytes }},
	{"gradients", "gradi-\nents", 'g', text.FgGreen, func(predicted *devicemap.Predicted) int64 { return predicted.GradsBytes }},
	{"optimizer", "opti-\nmizer", 'o', text.FgCyan, func(predicted *devicemap.Predicted) int64 { return predicted.OptimizerStateBytes }},
	{"activations", "activa-\ntions", 'a', text.FgYellow, func(predicted *devicemap.Predicted) int64 { return predicted.ActivationsBytes }},
	{"KV cache", "KV\ncache", 'k', text.FgMagenta, func(predicted *devicemap.Predicted) int64 { return predicted.KVCacheBytes }},
	{"workspace", "work-\nspace", 's', text.FgRed, func(predicted *devicemap.Predicted) int64 { return predicted.WorkspaceBytes }},
	{"communication", "commu-\nnication", 'c', text.FgHiRed, func(predicted *devicemap.Predicted) int64 { return predicted.CommBuffersBytes }},
	{"overhead", "over-\nhead", 'x', text.FgHiBlack, func(predicted *devicemap.Predicted) int64 { return predicted.OverheadBytes }},
}

// parts are the categories at a device's peak, and its overhead.
func parts(predicted *devicemap.Predicted) string {
	var out []string
	for i := range categories {
		if b := categories[i].of(predicted); b > 0 {
			out = append(out, fmt.Sprintf("%s %v", categories[i].name, costmodel.Bytes(b)))
		}
	}
	return strings.Join(out, ", ")
}
