package boundprice

import "context"

// fail keeps the prices that a trial without a result came to, the volume
// algorithm's and the program's: at lower loads they are often the best.
func (try *trial) fail() { try.failed = [][]float64{try.centre, try.asked} }

// choose begins with the best of the prices that refuted a lower load and those
// that did not refute a higher one.
func (try *trial) choose(ctx context.Context) {
	if try.failed == nil {
		return
	}
	rough, best := try.roughly, 0.0
	try.roughly = false
	for _, prices := range append(try.failed, try.prices) {
		copy(try.asked, prices)
		if _, done := try.take(ctx); done && try.of() > best {
			best = try.of()
			copy(try.centre, prices)
		}
	}
	copy(try.asked, try.centre)
	try.roughly = rough
}
