package out

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/devmap-dev/devmap/planner"
)

// showAfter is how long a search runs before it shows its progress.
const showAfter = 300 * time.Millisecond

// wiped clears the line of a terminal.
const wiped = "\r\x1b[K"

// Progress shows a long search on a terminal; done clears it.
func Progress(stderr io.Writer) (show func(planner.Progress), done func()) {
	say, done := searching(stderr)
	if say == nil {
		return nil, done
	}
	return func(progress planner.Progress) {
		what := fmt.Sprintf("placing: %d targets tried, best %.4f, bound %.4f", progress.Probes, progress.Best.Float(), progress.Lower.Float())
		if progress.Total > 0 {
			what = fmt.Sprintf("evening out: device %d of %d", progress.Done, progress.Total)
		}
		say(what)
	}, done
}

// BenchmarkProgress shows the progress of a benchmark: its largest load.
func BenchmarkProgress(stderr io.Writer) (show func(value, bound float64), done func()) {
	say, done := searching(stderr)
	if say == nil {
		return nil, done
	}
	return func(value, bound float64) {
		if math.IsInf(value, 1) {
			say(fmt.Sprintf("placing: bound %.6g", bound))
			return
		}
		say(fmt.Sprintf("placing: largest load %.6g, bound %.6g", value, bound))
	}, done
}

// searching shows the last text on a terminal, from some time after the start until done. It moves
// even without a new text. say is nil if there is no terminal.
func searching(stderr io.Writer) (say func(string), done func()) {
	if !Terminal(Asides(stderr)) {
		return nil, func() {}
	}
	return paint(FileOf(stderr), "placing", showAfter)
}

// Watch shows the last text of a long operation on a terminal, starting with what; done clears it.
// Without a terminal it shows nothing.
func Watch(stderr io.Writer, what string) (say func(string), done func()) {
	if !Terminal(Asides(stderr)) {
		return func(string) {}, func() {}
	}
	return paint(FileOf(stderr), what, showAfter)
}

// Wipe clears the terminal line on which a process showed progress before it ended.
func Wipe(stderr io.Writer) {
	if Terminal(stderr) {
		FileOf(stderr).WriteString(wiped) //nolint:errcheck // only the picture suffers
	}
}

// paint draws a spinner at an interval: what, later the last text, and the seconds since the first
// drawing. It runs in a goroutine that done ends and waits for.
func paint(to io.Writer, what string, often time.Duration) (say func(string), done func()) {
	words, over, gone := make(chan string), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(often)
		defer tick.Stop()
		var began time.Time
		for turn := 0; ; {
			select {
			case what = <-words:
			case now := <-tick.C:
				if turn == 0 {
					began = now
				}
				fmt.Fprintf(to, "%s%c %s [%v]", wiped, `|/-\`[turn%4], what, now.Sub(began).Truncate(time.Second)) //nolint:errcheck // only the picture suffers
				turn++
			case <-over:
				if turn > 0 {
					io.WriteString(to, wiped) //nolint:errcheck // likewise
				}
				return
			}
		}
	}()
	return func(what string) { words <- what }, func() { close(over); <-gone }
}
