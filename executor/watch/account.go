package watch

import (
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/nvml"
)

// account is what a GPU holds, taken apart: what was there before the command, what
// other processes have taken or released since, and the rest, which is the
// command's.
type account struct {
	place  Place
	before int64 // held as the watching began, and not by the command
	used   int64 // of all processes, now
	peak   int64 // the most of the command's
	growth Growth

	// Of processes, as they were listed last. theirs is what others that are shown
	// here hold; first is that as the watching began.
	theirs, first int64
	own           int64 // what the driver says of the command's; -1: of one it does not say
	processes     int   // the command's
	most          int   // of processes
	wasShown      bool  // a process of the command was shown once
	others        map[int]int64
	moved         string // what other processes did; empty: nothing that is known
	strangers     int    // processes of another namespace that came since
	mute          error  // why processes are not listed
}

// movedBytes is by how much another process may change and count as still: the
// driver counts some of a process's memory a moment later.
const movedBytes = 16 << 20

// begin takes the first reading. attached: the command is there already, and what it
// holds is not known where its processes are not shown: then all is taken for its.
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

// look takes the processes on the GPU. Those that came since the watching began and
// that this machine does not show are of another namespace: they are taken for the
// command's, as drivers tell processes in containers by the host's numbers.
func (account *account) look(processes []nvml.Process, err error, whose *Tree) {
	if account.mute = err; err != nil || whose == nil {
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

// compare says what other processes did since they were listed last.
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

// usedByCommand is what the command holds.
func (account *account) usedByCommand() int64 {
	return max(0, account.used-account.before-(account.theirs-account.first))
}

// sample takes a reading, and reports one beyond all before it.
func (account *account) sample(when time.Duration, used int64) {
	account.used = used
	account.peak = max(account.peak, account.usedByCommand())
	account.growth.add(when, account.usedByCommand())
}

// higher reports that a reading would be a new peak, so that whose it is has to be
// known first.
func (account *account) higher(used int64) bool {
	return used-account.before-(account.theirs-account.first) > account.peak
}
