package watching

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/watch"
)

// Live shows GPUs while a command runs: on a terminal one bar each, below the command's output,
// otherwise a line from time to time.
type Live struct {
	title         string
	predicted     [][2]int64 // by GPU of the plan, least and most
	states        func() []watch.GPUState
	to            io.Writer
	screen        *screen // nil: no terminal
	colour        bool
	began         time.Time
	over          chan struct{}
	gone          sync.WaitGroup
	once          sync.Once
	reportedPeaks []int64 // peaks at the last printed line
}

// redrawEvery is the time between drawings on a terminal. Otherwise a line follows after spoken if
// a peak has risen by a hundredth of its GPU, and after always in any case.
const (
	redrawEvery = 500 * time.Millisecond
	spoken      = 10 * time.Second
	always      = time.Minute
)

// NewLive shows GPUs on a stream, compared with a prediction unless that is 0.
func NewLive(stderr io.Writer, title string, predicted [][2]int64, states func() []watch.GPUState) *Live {
	return &Live{
		title: title, predicted: predicted, states: states, to: stderr, screen: newScreen(stderr),
		colour: out.Coloured(stderr), over: make(chan struct{}), reportedPeaks: make([]int64, len(predicted)),
	}
}

// Begin shows the GPUs until [Live.Close].
func (live *Live) Begin() {
	live.began = time.Now()
	if live.screen == nil {
		live.say("watching %s; %s\n", live.names(), live.title)
	}
	live.gone.Go(func() {
		every := spoken
		if live.screen != nil {
			every = redrawEvery
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			live.show()
			select {
			case <-tick.C:
			case <-live.over:
				if live.screen != nil {
					live.show() // changes since the last time
				}
				return
			}
		}
	})
}

// Close ends the display, and restores the terminal.
func (live *Live) Close() {
	live.once.Do(func() {
		close(live.over)
		live.gone.Wait()
		if live.screen != nil {
			live.screen.close()
		}
	})
}

func (live *Live) show() {
	states, since := live.states(), time.Since(live.began)
	if live.screen != nil {
		live.screen.render(live.lines(states, since, live.screen.width()))
		return
	}
	if live.shouldReport(states, since) {
		live.say("%s\n", live.plain(states, since))
	}
}

// shouldReport reports that a line is due.
func (live *Live) shouldReport(states []watch.GPUState, since time.Duration) bool {
	const share = 100
	report := since >= spoken && since%always < spoken
	for i := range states {
		report = report || states[i].PeakBytes-live.reportedPeaks[i] > states[i].Total/share
	}
	if report {
		for i := range states {
			live.reportedPeaks[i] = states[i].PeakBytes
		}
	}
	return report
}

func (live *Live) say(format string, args ...any) {
	out.Say(live.to, "devmap watch: "+format, args...) //nolint:errcheck // nothing to do about a closed stderr
}

// names returns the names of the GPUs.
func (live *Live) names() string {
	var names []string
	for _, state := range live.states() {
		names = append(names, fmt.Sprintf("GPU %d (%s)", state.Number, state.Name))
	}
	return strings.Join(names, ", ")
}

// lines returns a title and one line per GPU, none wider than the terminal. A line has a bar as
// wide as the GPU's memory, and figures.
func (live *Live) lines(states []watch.GPUState, since time.Duration, columns int) []string {
	lines := []string{cut(fmt.Sprintf("── %s · %s · █ held, ▒ until its peak, ┃ predicted, ░ others", since.Truncate(time.Second), live.title), columns)}
	figures, widest := make([]string, len(states)), 0
	for i := range states {
		figures[i] = live.figures(i, states)
		widest = max(widest, len([]rune(figures[i])))
	}
	const label, narrowest = 9, 10
	width := max(narrowest, min(60, columns-label-2-widest))
	for i := range states {
		begin := fmt.Sprintf("GPU %-*d", label-len("GPU "), states[i].Number)
		bar := bar(&states[i], live.predicted[i][1], width)
		rest := cut("  "+figures[i], columns-label-width)
		if live.colour {
			bar = coloured(bar, live.predicted[i][1] > 0 && states[i].PeakBytes > live.predicted[i][1])
		}
		lines = append(lines, begin+bar+rest)
	}
	return lines
}

// figures returns the figures of a GPU.
func (live *Live) figures(i int, states []watch.GPUState) string {
	state := &states[i]
	text := fmt.Sprintf("%v, peak %v", costmodel.Bytes(state.CommandBytes), costmodel.Bytes(state.PeakBytes))
	if predicted := live.predicted[i][1]; predicted > 0 {
		text += fmt.Sprintf(" of %v", costmodel.Bytes(predicted))
	}
	if state.Growth.Rises > 0 {
		text += fmt.Sprintf(", grew %d× (last %v)", state.Growth.Rises, costmodel.Bytes(state.Growth.LastRise))
	}
	if state.Processes > 1 {
		text += fmt.Sprintf(", %d processes", state.Processes)
	}
	if over := live.buildUp(states); i == 0 && over > 0 {
		text += fmt.Sprintf(", builds up: %v beyond", costmodel.Bytes(over))
	}
	if state.BeforeBytes >= 1<<20 {
		text += fmt.Sprintf(", others %v", costmodel.Bytes(state.BeforeBytes))
	}
	return text
}

// buildUp returns how far the first GPU's peak exceeds its prediction, if no other GPU's does:
// memory of the others may be there. 0: that is not so.
func (live *Live) buildUp(states []watch.GPUState) int64 {
	for i := range states[1:] {
		if states[1+i].PeakBytes > live.predicted[1+i][1] {
			return 0
		}
	}
	if len(states) < 2 || live.predicted[0][1] == 0 {
		return 0
	}
	return max(0, states[0].PeakBytes-live.predicted[0][1])
}

// bar draws a GPU's memory: others' memory, the command's, its peak, and a mark at the prediction.
func bar(state *watch.GPUState, predicted int64, width int) string {
	column := func(bytes int64) int {
		return min(width, int(float64(bytes)/float64(max(1, state.Total))*float64(width)+0.5))
	}
	others, used, peak := column(state.BeforeBytes), column(state.BeforeBytes+state.CommandBytes), column(state.BeforeBytes+state.PeakBytes)
	mark := min(width-1, column(state.BeforeBytes+predicted))
	cells := make([]rune, width)
	for i := range cells {
		switch {
		case i == mark && predicted > 0:
			cells[i] = '┃'
		case i < others:
			cells[i] = '░'
		case i < used:
			cells[i] = '█'
		case i < peak:
			cells[i] = '▒'
		default:
			cells[i] = '·'
		}
	}
	return string(cells)
}

// coloured returns a bar in red if a peak exceeds its prediction, else in green; free memory has no
// colour.
func coloured(bar string, beyond bool) string {
	colour := "\x1b[32m"
	if beyond {
		colour = "\x1b[31m"
	}
	free := strings.TrimRight(bar, "·")
	return colour + free + "\x1b[0m" + bar[len(free):]
}

func cut(text string, columns int) string {
	runes := []rune(out.OneLine(text))
	return string(runes[:max(0, min(len(runes), columns))])
}

// plain returns a line with the GPUs' memory, for output without a terminal.
func (live *Live) plain(states []watch.GPUState, since time.Duration) string {
	parts := make([]string, len(states))
	for i := range states {
		parts[i] = fmt.Sprintf("GPU %d %s", states[i].Number, live.figures(i, states))
	}
	return fmt.Sprintf("%s: %s", since.Truncate(time.Second), strings.Join(parts, "; "))
}
