package watch

import "time"

// What is distinguished as plateaus: drivers map memory by 2 MiB, and an allocator that
// keeps what it has grows by steps.
const (
	flatBytes = 2 << 20
	flatTime  = time.Second
)

// Growth is how what a GPU holds of a command went from plateau to plateau: a level
// that it kept for a second. Bytes.
type Growth struct {
	Plateaus  int   `json:"plateaus"`
	Rises     int   `json:"rises"` // of one beyond the one before it
	FirstUsed int64 `json:"first_bytes"`
	LastUsed  int64 `json:"last_bytes"`
	LastRise  int64 `json:"last_rise_bytes"` // of the last of these

	level   int64
	since   time.Duration
	counted bool
}

// add takes what is held at a moment.
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
	case max(rise, -rise) < flatBytes: // back to where it was, behind a spike
		return
	case rise > 0:
		growth.Rises, growth.LastRise = growth.Rises+1, rise
	}
	growth.Plateaus, growth.LastUsed = growth.Plateaus+1, growth.level
}
