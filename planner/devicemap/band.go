package devicemap

import "math"

// widen gives a peak the band of an unread family: a range of possible peaks,
// around those that there are.
func (p *Predicted) widen(band float64) {
	if band == 0 || p.PeakAllocatedBytes == 0 {
		return
	}
	low, high := p.PeakAllocatedBytes, p.PeakAllocatedBytes
	if len(p.PeakRangeBytes) == 2 {
		low, high = p.PeakRangeBytes[0], p.PeakRangeBytes[1]
	}
	p.PeakRangeBytes = []int64{int64(math.Round((1 - band) * float64(low))), int64(math.Round((1 + band) * float64(high)))}
}
