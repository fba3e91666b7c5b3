package watch

import (
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/nvml"
)

// account divides the memory in use on a GPU. Some was in use before the command, and some is what
// other processes have taken or released since. The rest is the command's.
type account struct {
	place    Place
	before   int64 // in use as the watching began, and not by the command
	used     int64 // of all processes, now
	peak     int64 // the command's most
	growth   Growth
	readings Readings

	// From the last list of processes. theirs is the memory of others that this machine shows;
	// first is that as the watching began.
	theirs, first int64
	own           int64 // the driver's figure for the command; -1: it has none for a process
	processes     int   // the command's
	most          int   // the most processes at once
	wasShown      bool  // a process of the command was shown once
	others        map[int]int64
	moved         string // what other processes did; empty: nothing that is known
	strangers     int    // processes of another namespace that came since
}

// movedBytes is how much the memory of another process may change before it counts as moved. The
// driver counts some of a process's memory a moment later.
const movedBytes = 16 << 20

// begin takes the first reading. attached: the command already runs. If its processes are not
// shown, its memory is not known: then all memory counts as its own.
func (account *account) begin(used int64, processes []nvml.Process, err error, whose *Tree, attached bool) {
	account.look(processes, err, whose)
	account.first, account.used, account.before = account.theirs, used, used
	switch {
	case whose == nil:
		account.before = 0
	case attached && account.processes > 0 && account.own >= 0:
		account.before = used - account.own
	case attached:
		account.before = account.theirs
	}
	account.sample(0, used)
}

// look takes the list of processes on the GPU. Those that came since the watching began and that
// this machine does not show are of another namespace. They count as the command's, because drivers
// show processes in containers by the host's numbers.
func (account *account) look(processes []nvml.Process, err error, whose *Tree) {
	if err != nil || whose == nil {
		account.processes = len(processes)
		account.most = max(account.most, account.processes)
		return
	}
	beginning := account.others == nil
	now := make(map[int]int64)
	account.own, account.theirs, account.processes, account.strangers = 0, 0, 0, 0
	for _, process := range processes {
		ours, here := whose.Has(process.ID)
		_, was := account.others[process.ID]
		switch {
		case ours:
			account.processes++
			if process.Used < 0 || account.own < 0 {
				account.own = -1
			} else {
				account.own += process.Used
			}
		case here || was || beginning:
			now[process.ID] = process.Used
			account.theirs += max(0, process.Used)
		default:
			account.strangers++
		}
	}
	if !beginning {
		account.compare(now)
	}
	account.others = now
	account.wasShown = account.wasShown || account.processes > 0
	account.most = max(account.most, account.processes)
}

// compare records what other processes did since the last list.
func (account *account) compare(now map[int]int64) {
	for process, bytes := range now {
		before, was := account.others[process]
		switch more := bytes - before; {
		case !was:
			account.move("process %d came, with %s", process, usedBytes(bytes))
		case max(more, -more) > movedBytes:
			account.move("process %d went from %s to %s", process, usedBytes(before), usedBytes(bytes))
		}
	}
	for process, bytes := range account.others {
		if _, is := now[process]; !is {
			account.move("process %d left, which had %s", process, usedBytes(bytes))
		}
	}
}

func (account *account) move(format string, args ...any) {
	if account.moved == "" {
		account.moved = fmt.Sprintf(format, args...)
	}
}

func usedBytes(bytes int64) string {
	if bytes < 0 {
		return "an unknown amount of memory"
	}
	return costmodel.Bytes(bytes).String()
}

// usedByCommand returns the bytes that the command has in use.
func (account *account) usedByCommand() int64 {
	return max(0, account.used-account.before-(account.theirs-account.first))
}

// sample takes a reading, and keeps the peak.
func (account *account) sample(when time.Duration, used int64) {
	account.used = used
	account.peak = max(account.peak, account.usedByCommand())
	account.growth.add(when, account.usedByCommand())
	account.readings.add(when, account.usedByCommand(), account.used-account.usedByCommand())
}

// higher reports whether a reading would be a new peak. Then its owner has to be known first.
func (account *account) higher(used int64) bool {
	return used-account.before-(account.theirs-account.first) > account.peak
}
