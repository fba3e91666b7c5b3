package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/devmap-dev/devmap/planner/chain"
)

// patience is how long a search goes on before it shows itself.
const patience = 300 * time.Millisecond

// progress shows a long search on a terminal; done clears it.
func progress(stderr io.Writer) (show func(chain.Progress), done func()) {
	if !terminal(stderr) {
		return nil, func() {}
	}
	start := time.Now()
	var bar *progressbar.ProgressBar
	show = func(p chain.Progress) {
		if time.Since(start) < patience {
			return
		}
		if bar == nil {
			bar = progressbar.NewOptions(-1, progressbar.OptionSetWriter(fileOf(stderr)), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(patience))
		}
		what := fmt.Sprintf("placing: %d targets tried, best %.4f, bound %.4f", p.Probes, p.Best.Float(), p.Lower.Float())
		if p.Total > 0 {
			what = fmt.Sprintf("evening out: device %d of %d", p.Done, p.Total)
		}
		bar.Describe(what)
		bar.Add(1) //nolint:errcheck // only the picture suffers
	}
	return show, func() {
		if bar != nil {
			bar.Finish() //nolint:errcheck // likewise
		}
	}
}
