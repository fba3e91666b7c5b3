package watching

import (
	"os"
	"os/signal"
)

// maxSignals is how often a command may get the same signal to end before it is killed.
const maxSignals = 3

// Signals sees to it that signals end the command and not what watches it, until
// done is called: what a terminal sends, the command has got already; what another
// process sends, it gets from here, once it has begun. Asked for the third time it is
// killed.
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
