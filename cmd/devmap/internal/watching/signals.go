package watching

import (
	"os"
	"os/signal"
)

// maxSignals is the number of equal signals after which the command is killed.
const maxSignals = 3

// Signals makes signals end the command and not devmap, until done is called. The command gets a
// terminal's signals directly. Signals of other processes are forwarded after its start. The third
// equal signal kills it.
func Signals(child *Child) (done func()) {
	got, over := make(chan os.Signal, 8), make(chan struct{})
	signal.Notify(got, watched...)
	go func() {
		select {
		case <-child.started:
		case <-over:
			return
		}
		times := make(map[os.Signal]int)
		for {
			select {
			case one := <-got:
				times[one]++
				switch {
				case times[one] >= maxSignals:
					child.Kill()
				case !typed(one):
					child.Signal(one)
				}
			case <-over:
				return
			}
		}
	}()
	return func() { signal.Stop(got); close(over) }
}
