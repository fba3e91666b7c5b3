package out

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/devmap-dev/devmap/planner"
)

// patience is how long a search goes on before it shows itself.
const patience = 300 * time.Millisecond

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

// PosedProgress is that of a problem that a file poses: its largest load.
func PosedProgress(stderr io.Writer) (show func(value, bound float64), done func()) {
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

// searching shows on a terminal what was said last, from when a search has
// taken a while until it is done, and moves though nothing new is said. say is
// nil where there is no terminal.
func searching(stderr io.Writer) (say func(string), done func()) {
	if !Terminal(stderr) {
		return nil, func() {}
	}
	return paint(FileOf(stderr), "placing", patience)
}

// Watch shows on a terminal what was said last of something long, which first is
// what; done clears it. Without a terminal nothing is shown.
func Watch(stderr io.Writer, what string) (say func(string), done func()) {
	if !Terminal(stderr) {
		return func(string) {}, func() {}
	}
	return paint(FileOf(stderr), what, patience)
}

// Wipe clears the line of a terminal on which a process showed progress that is no
// more.
func Wipe(stderr io.Writer) {
	if Terminal(stderr) {
		FileOf(stderr).WriteString("\r\x1b[K") //nolint:errcheck // only the picture suffers
	}
}

// paint draws every so often, in a goroutine that done ends and waits for: what
// is first, then what was said last.
func paint(to io.Writer, what string, often time.Duration) (say func(string), done func()) {
	words, over, gone := make(chan string), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(often)
		defer tick.Stop()
		var bar *progressbar.ProgressBar
		for {
			select {
			case what = <-words:
				continue
			case <-tick.C:
			case <-over:
				if bar != nil {
					bar.Finish() //nolint:errcheck // only the picture suffers
				}
				return
			}
			if bar == nil {
				bar = progressbar.NewOptions(-1, progressbar.OptionSetWriter(to), progressbar.OptionClearOnFinish())
			}
			bar.Describe(what)
			bar.Add(1) //nolint:errcheck // likewise
		}
	}()
	return func(what string) { words <- what }, func() { close(over); <-gone }
}
