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
	{"weights", "weights", 'w', text.FgBlue, func(p *devicemap.Predicted) int64 { return p.ParamsBytes }},
	{"gradients", "gradi-\nents", 'g', text.FgGreen, func(p *devicemap.Predicted) int64 { return p.GradsBytes }},
	{"optimizer", "opti-\nmizer", 'o', text.FgCyan, func(p *devicemap.Predicted) int64 { return p.OptimizerStateBytes }},
	{"activations", "activa-\ntions", 'a', text.FgYellow, func(p *devicemap.Predicted) int64 { return p.ActivationsBytes }},
	{"KV cache", "KV\ncache", 'k', text.FgMagenta, func(p *devicemap.Predicted) int64 { return p.KVCacheBytes }},
	{"workspace", "work-\nspace", 's', text.FgRed, func(p *devicemap.Predicted) int64 { return p.WorkspaceBytes }},
	{"communication", "commu-\nnication", 'c', text.FgHiRed, func(p *devicemap.Predicted) int64 { return p.CommBuffersBytes }},
	{"overhead", "over-\nhead", 'x', text.FgHiBlack, func(p *devicemap.Predicted) int64 { return p.OverheadBytes }},
}

// parts are the categories at a device's peak, and its overhead.
func parts(p *devicemap.Predicted) string {
	var out []string
	for i := range categories {
		if b := categories[i].of(p); b > 0 {
			out = append(out, fmt.Sprintf("%s %v", categories[i].name, costmodel.Bytes(b)))
		}
	}
	return strings.Join(out, ", ")
}
