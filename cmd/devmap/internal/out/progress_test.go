package out

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPaint: each tick paints the last message, even without a new one. The line is cleared at the
// end. A search that ends before the first tick paints nothing.
func TestPaint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var painted strings.Builder
		say, done := paint(&painted, "placing", time.Second)
		say("placing: bound 3")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		say("placing: bound 4")
		time.Sleep(time.Second)
		synctest.Wait()
		done()
		want := strings.Join([]string{"", "| placing: bound 3 [0s]", "/ placing: bound 3 [1s]", "- placing: bound 4 [2s]", ""}, wiped)
		if painted.String() != want {
			t.Errorf("%q, want %q", painted.String(), want)
		}
		painted.Reset()
		_, done = paint(&painted, "placing", time.Second)
		done()
		if painted.Len() > 0 {
			t.Errorf("%q was drawn of a short search", painted.String())
		}
	})
}
