package devicemap

// Verdict says whether a device or a plan fits: "fits", "tight" or "no". Tight means that the peak
// fits, and the upper end of the allocator's pool does not.
type Verdict string

const (
	fits     Verdict = "fits"
	tight    Verdict = "tight"
	tooLarge Verdict = "no"
)

// verdictOf compares the free memory at the peak with the most that the pool reserves beyond it.
func verdictOf(headroom, slack int64) Verdict {
	switch {
	case headroom < 0:
		return tooLarge
	case headroom < slack:
		return tight
	}
	return fits
}
