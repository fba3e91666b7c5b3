package steptime

import "slices"

// Span is what one stream of a device does from Start to End, in seconds since the step began.
type Span struct {
	Device int
	// Stream is "compute", "send" or "collectives".
	Stream string
	// What is "forward", "backward", "update", "decode", "transfer", "gather" or "reduce".
	What string
	// FirstUnit and EndUnit are the range of units; equal: none. Batch is the micro-batch; −1: none, or several.
	FirstUnit, EndUnit int
	Batch              int64
	Start, End         float64
}

// recorder keeps spans; nil keeps none.
type recorder struct{ spans []Span }

func (record *recorder) add(span Span) {
	if record != nil && span.End > span.Start {
		record.spans = append(record.spans, span)
	}
}

// repeat adds the spans from an index on so many times more, each time a period later. Beyond most
// spans, each device has one span for all times that are left.
func (record *recorder) repeat(from int, period float64, times int64) {
	if record == nil {
		return
	}
	once := slices.Clone(record.spans[from:])
	const most = 1 << 16
	each := min(times, most/int64(max(1, len(once))))
	for time := int64(1); time <= each; time++ {
		for _, span := range once {
			span.Start += float64(time) * period
			span.End += float64(time) * period
			span.Batch += time
			record.add(span)
		}
	}
	if each == times {
		return
	}
	known := map[int]bool{}
	for _, span := range once {
		if !known[span.Device] && span.Stream == streamCompute {
			known[span.Device] = true
			span.Batch, span.FirstUnit, span.EndUnit = -1, 0, 0
			span.Start, span.End = once[0].Start+float64(each+1)*period, once[0].Start+float64(times+1)*period
			record.add(span)
		}
	}
}

// cost is what a step costs in additions, for the function [repeat]. A recorder makes it 0: repeat then
// runs every step.
func (record *recorder) cost(additions int64) int64 {
	if record != nil {
		return 0
	}
	return additions
}

// ofStages gives each span the units of its stage and the device of its rank. place is the stages' place of
// each unit, devices are by rank.
func (record *recorder) ofStages(place []int, devices []int) {
	if record == nil {
		return
	}
	var begins []int
	for unit := range place {
		if unit == 0 || place[unit-1] != place[unit] {
			begins = append(begins, unit)
		}
	}
	begins = append(begins, len(place))
	for i := range record.spans {
		span := &record.spans[i]
		stage := span.FirstUnit
		span.Device, span.FirstUnit, span.EndUnit = devices[span.Device], begins[stage], begins[stage+1]
	}
}

// The streams and what they do.
const (
	streamCompute     = "compute"
	streamSend        = "send"
	streamCollectives = "collectives"

	doesForward  = "forward"
	doesBackward = "backward"
	doesUpdate   = "update"
	doesDecode   = "decode"
	doesTransfer = "transfer"
	doesGather   = "gather"
	doesReduce   = "reduce"
)
