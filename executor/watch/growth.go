package watch

import "time"

// Plateaus differ by this many bytes and last this long. Drivers map memory by 2 MiB, and an
// allocator that keeps its memory grows by steps.
const (
	flatBytes = 2 << 20
	flatTime  = time.Second
)

// Growth is how the command's memory on a GPU went from plateau to plateau, in bytes. A plateau is
// a level that lasted for a second.
type Growth struct {
	Plateaus  int   `json:"plateaus"`
	Rises     int   `json:"rises"` // plateaus above the one before
	FirstUsed int64 `json:"first_bytes"`
	LastUsed  int64 `json:"last_bytes"`
	LastRise  int64 `json:"last_rise_bytes"` // of the last rise

	level   int64
	since   time.Duration
	counted bool
}

// add takes the memory in use at a moment.
func (growth *Growth) add(when time.Duration, bytes int64) {
	if apart := bytes - growth.level; max(apart, -apart) >= flatBytes {
		growth.level, growth.since, growth.counted = bytes, when, false
		return
	}
	if growth.counted || when-growth.since < flatTime || growth.level < flatBytes {
		return
	}
	growth.counted = true
	rise := growth.level - growth.LastUsed
	switch {
	case growth.Plateaus == 0:
		growth.FirstUsed = growth.level
	case max(rise, -rise) < flatBytes: // back to the level before a spike
		return
	case rise > 0:
		growth.Rises, growth.LastRise = growth.Rises+1, rise
	}
	growth.Plateaus, growth.LastUsed = growth.Plateaus+1, growth.level
}
