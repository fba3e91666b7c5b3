package serve

import (
	"fmt"
	"math"
	"sort"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/serving"
)

// Question is what is to be planned.
type Question struct {
	Model   *serving.Model
	Devices []Device // in the order of the engine
	// Set are the engine's settings. A Context of 0 asks for the longest; Pipelined and HostExperts
	// are answers.
	Set serving.LlamaCPP
	// Draft proposes tokens, with the model's context; nil: none. It is on one device, or split as the
	// model if DraftOn is below 0.
	Draft   *serving.Model
	DraftOn int
	// Encoder is that of images, on the first device; nil: none.
	Encoder *serving.Encoder
}

// Device is what a device has for the engine, in bytes: Budget in all, and Context of it for the
// driver. A device with units leaves Margin free for libraries. Bandwidth is in bytes/s; 0: unknown.
type Device struct {
	Budget, Context, Margin int64
	Bandwidth               float64
}

// Overhead is what the model may not take of a device with so many units.
func (device Device) Overhead(units int) int64 {
	if units == 0 {
		return device.Context
	}
	return device.Context + device.Margin
}

// Answer is a placement with its settings.
type Answer struct {
	Set serving.LlamaCPP
	// InTurn: devices work one after another although all is on them.
	InTurn bool
	Counts []int // units of each device: blocks in order, and last the output
	// Devices and OnHost are what each holds, and Extra what of it is of the draft and the encoder.
	Devices, Extra []serving.Memory
	OnHost         serving.Memory
	// Full: no longer context fits. Otherwise the context is the one asked for, or the model was
	// trained for no longer one.
	Full bool
	// Fit is the context of llama.cpp's own --fit, if none was asked for. OnDevices: it has all blocks
	// on the devices.
	Fit       int64
	OnDevices bool
	// Share is the largest share of a budget, with the overhead. No other placement of this context,
	// with blocks in order, has a share of Bound or less.
	Share, Bound float64
}

// InfeasibleError is a question without an answer.
type InfeasibleError struct {
	Device  int   // a device without room for the driver, or for a draft or an encoder, or -1
	Extra   bool  // the draft or the encoder has no room
	Context int64 // tokens that do not fit
	Needs   int64 // bytes that every placement holds on devices, with all blocks on the host
	Has     int64 // bytes of all budgets
}

// Error implements error.
func (err *InfeasibleError) Error() string {
	if err.Extra {
		return fmt.Sprintf("nothing fits: with %d tokens, GPU %d needs %v for the draft or the encoder of images, CUDA's context and the margin of 1 GiB, and has %v", err.Context, err.Device, costmodel.Bytes(err.Needs), costmodel.Bytes(err.Has))
	}
	if err.Device >= 0 {
		return fmt.Sprintf("nothing fits: CUDA's context takes %v on GPU %d, which has %v", costmodel.Bytes(err.Needs), err.Device, costmodel.Bytes(err.Has))
	}
	return fmt.Sprintf("nothing fits: with %d tokens and all blocks on the host, the output and its buffers take %v, and beyond CUDA's context and the margin of 1 GiB the GPUs have %v", err.Context, costmodel.Bytes(err.Needs), costmodel.Bytes(err.Has))
}

// step is what contexts are multiples of (llama-context.cpp: GGML_PAD), and shortest the context
// below which blocks leave the devices for the host (common/arg.cpp: -fitc).
const step, shortest = 256, 4096

// placed is a way to use the devices: the blocks and experts on the host, and whether devices work one after
// another although all is on them.
type placed struct {
	host, experts int
	inTurn        bool
}

// Solve returns the longest context that fits, or a placement of the context that is asked for. As
// little as possible is on the host: the experts of the first blocks, or whole blocks. Among the
// placements it takes the one whose largest share of a budget is smallest, and among these one with
// more units on faster devices. A device's memory grows
// with its run of units, so that filling one device after another decides what fits.
//
// Devices work at a time on parts of a prompt, with four copies of their inputs. They work in turn
// only if llama.cpp's own --fit gives a longer context: it does not count the copies.
func Solve(question Question) (*Answer, error) {
	for i, device := range question.Devices {
		if device.Context > device.Budget {
			return nil, &InfeasibleError{Device: i, Needs: device.Context, Has: device.Budget}
		}
	}
	wanted := question.Set.Context
	if wanted == 0 {
		wanted = min(shortest, max(step, question.Model.Trained))
	}
	way, found := question.way(wanted)
	if !found {
		return nil, question.infeasible(wanted)
	}
	if question.Set.Context > 0 {
		if turn := (placed{inTurn: true}); way != (placed{}) && question.fill(turn, wanted) { // before blocks go to the host
			way = turn
		}
		return question.balanced(way, wanted, false), nil
	}
	context, full := question.longest(way, wanted)
	fit, onDevices := Fit(question)
	if onDevices && context < fit.Set.Context && way == (placed{}) {
		way.inTurn = true
		context, full = question.longest(way, context)
	}
	answer := question.balanced(way, context, full)
	answer.Fit, answer.OnDevices = fit.Set.Context, onDevices
	return answer, nil
}

// way finds what must stay on the host for a context.
func (question *Question) way(context int64) (placed, bool) {
	blocks := len(question.Model.Blocks)
	if question.Model.Experts > 0 {
		for experts := range blocks + 1 {
			if way := (placed{experts: experts}); question.fill(way, context) {
				return way, true
			}
		}
	}
	for host := range blocks + 1 {
		if way := (placed{host: host}); question.fill(way, context) {
			return way, true
		}
	}
	return placed{}, false
}

// settings are those of a way and a context.
func (question *Question) settings(way placed, context int64) serving.LlamaCPP {
	set := question.Set
	set.Context, set.HostBlocks, set.HostExperts = context, int64(way.host), int64(way.experts)
	set.Pipelined = len(question.Devices) > 1 && way == (placed{})
	return set
}

// fill gives each device as many units as its budget holds, and reports whether all have a place.
func (question *Question) fill(way placed, context int64) bool {
	set := question.settings(way, context)
	extra, _ := question.extra(&set, nil)
	return question.fillTo(&set, 1, extra, nil)
}

// limits are what the units of each device may take for a share of its budget. A fraction of a byte
// is rounded up, so that the run which has the share fits.
func (question *Question) limits(share float64, extra []serving.Memory) []int64 {
	limits := make([]int64, len(question.Devices))
	for i, device := range question.Devices {
		limits[i] = int64(math.Ceil(float64(device.Budget)*share)) - device.Overhead(1) - extra[i].Total()
	}
	return limits
}

// fillTo fills devices up to a share of their budgets. counts, if not nil, gets the units of each.
func (question *Question) fillTo(set *serving.LlamaCPP, share float64, extra []serving.Memory, counts []int) bool {
	model := question.Model
	at, all := int(set.HostBlocks), model.Units()
	for i, limit := range question.limits(share, extra) {
		if limit < 0 && extra[i].Total() > 0 {
			return false
		}
		count := sort.Search(all-at, func(more int) bool { return set.Run(model, at, at+more+1).Total() > limit })
		if counts != nil {
			counts[i] = count
		}
		at += count
	}
	return at == all
}

// longest finds the longest context of a way, from one that fits. It is full if memory ends it.
func (question *Question) longest(way placed, fits int64) (context int64, full bool) {
	most := max(fits, question.Model.Trained)
	if question.fill(way, most) {
		return most, false
	}
	low, high := fits/step, (most+step-1)/step // low fits, high does not
	for low+1 < high {
		if middle := (low + high) / 2; question.fill(way, middle*step) {
			low = middle
		} else {
			high = middle
		}
	}
	return max(fits, low*step), true
}
