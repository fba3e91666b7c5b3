package out

import (
	"strings"
	"testing"
	"time"
)

// heard passes on what is written, so that a test can wait for it.
type heard chan string

func (h heard) Write(b []byte) (int, error) {
	h <- string(b)
	return len(b), nil
}

// TestPaint: what was said last is drawn, again and again though nothing new
// is said, and nothing more once it is done.
func TestPaint(_ *testing.T) {
	out := make(heard, 1000)
	say, done := paint(out, "placing", time.Millisecond)
	say("placing: bound 3")
	for seen := 0; seen < 3; {
		if strings.Contains(<-out, "placing: bound 3") {
			seen++
		}
	}
	say("placing: bound 4")
	for !strings.Contains(<-out, "placing: bound 4") {
		continue
	}
	done()
	close(out) // a write after the end would panic
}
