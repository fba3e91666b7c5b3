package out

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPaint: what was said last is drawn at each tick though nothing new is said, and
// the line is cleared at the end. What ends before the first tick draws nothing.
func TestPaint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var drawn strings.Builder
		say, done := paint(&drawn, "placing", time.Second)
		say("placing: bound 3")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		say("placing: bound 4")
		time.Sleep(time.Second)
		synctest.Wait()
		done()
		want := strings.Join([]string{"", "| placing: bound 3 [0s]", "/ placing: bound 3 [1s]", "- placing: bound 4 [2s]", ""}, wiped)
		if drawn.String() != want {
			t.Errorf("%q, want %q", drawn.String(), want)
		}
		drawn.Reset()
		_, done = paint(&drawn, "placing", time.Second)
		if done(); drawn.Len() > 0 {
			t.Errorf("%q was drawn of a short search", drawn.String())
		}
	})
}
