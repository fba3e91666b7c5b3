package schedule

import (
	"errors"

	"github.com/devmap-dev/devmap/executor/internal/hostmemory"
	"github.com/devmap-dev/devmap/executor/program"
)

// marks are the events of an instruction. They are nil if nothing waits for them: an event costs a
// GPU a microsecond or two. Without began, a computing instruction begins when the one before it in
// its stream ends.
type marks struct{ began, came, ended Event }

// Mark makes the events of all instructions, and pins the host memory of their copies.
func (of *Scheduler) Mark() error {
	of.events = make([]marks, len(of.Program.Instrs))
	if err := of.checkHost(hostmemory.Limits); err != nil {
		return err
	}
	waited := of.waited()
	for i, device := range of.Devices {
		err := device.Do(func() error {
			if err := of.pin(i); err != nil {
				return err
			}
			last := make(map[int32]int32) // by stream: its line before
			for index := of.Program.Devices[i].First; index < of.Program.Devices[i].End; index++ {
				before, known := last[of.Of[index]]
				last[of.Of[index]] = index
				if err := of.mark(device.Driver, index, waited[index], known && of.follows(index, before)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// waits returns the waits that an instruction names.
func (of *Scheduler) waits(index int32) []program.Wait {
	instr := &of.Program.Instrs[index]
	return of.Program.Waits[instr.FirstWait:instr.EndWait]
}

// follows reports whether an instruction begins when the one before it in its stream ends: both
// compute, and it waits for nothing else. It then needs no event of its beginning.
func (of *Scheduler) follows(index, before int32) bool {
	for _, wait := range of.waits(index) {
		if of.Of[wait.Instr] != of.Of[index] {
			return false
		}
	}
	return Computes(of.Program.Instrs[before].Op)
}

func (of *Scheduler) mark(driver Driver, index int32, waited, follows bool) (err error) {
	instr, made := &of.Program.Instrs[index], &of.events[index]
	computes := Computes(instr.Op)
	meets := instr.Channel >= 0 && of.Program.Channels[instr.Channel].Slots == 0
	if computes && !follows {
		if made.began, err = driver.NewEvent(true); err != nil {
			return err
		}
	}
	if instr.Op == program.Recv && meets {
		if made.came, err = driver.NewEvent(false); err != nil {
			return err
		}
	}
	if computes || waited || instr.Op == program.Send || instr.Op == program.Fence || instr.Op == program.Free && !meets {
		made.ended, err = driver.NewEvent(computes)
	}
	return err
}

// Unmark releases the events of a device's instructions, on its thread.
func (of *Scheduler) Unmark(device *Device) error {
	var all []error
	for index := device.Plan.First; index < device.Plan.End && int(index) < len(of.events); index++ {
		made := &of.events[index]
		for _, event := range []Event{made.began, made.came, made.ended} {
			if event != nil {
				all = append(all, event.Destroy())
			}
		}
		*made = marks{}
	}
	return errors.Join(all...)
}
