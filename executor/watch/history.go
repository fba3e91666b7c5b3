package watch

import "time"

// Readings are the readings of a GPU over time, in at most mostReadings entries.
type Readings struct {
	// Place is the GPU.
	Place Place
	// Period is the length of each entry. Used and Most are the command's least and most bytes in it,
	// and Others what other processes had at most. An entry without a reading repeats the one before.
	Period             time.Duration
	Used, Most, Others []int64
}

// mostReadings is how many entries are kept of a GPU.
const mostReadings = 1200

// firstPeriod is the length of an entry at first.
const firstPeriod = 50 * time.Millisecond

// add takes a reading.
func (readings *Readings) add(when time.Duration, command, others int64) {
	if readings.Period == 0 {
		readings.Period = firstPeriod
	}
	for when/readings.Period >= mostReadings {
		readings.halve()
	}
	at := int(when / readings.Period)
	for len(readings.Used) <= at {
		used, most, rest := command, command, others
		if last := len(readings.Used) - 1; last >= 0 && len(readings.Used) < at { // nothing was read here
			used, most, rest = readings.Used[last], readings.Used[last], readings.Others[last]
		}
		readings.Used, readings.Most, readings.Others = append(readings.Used, used), append(readings.Most, most), append(readings.Others, rest)
	}
	readings.Used[at] = min(readings.Used[at], command)
	readings.Most[at] = max(readings.Most[at], command)
	readings.Others[at] = max(readings.Others[at], others)
}

// halve joins each two entries, and doubles the period.
func (readings *Readings) halve() {
	count := (len(readings.Used) + 1) / 2
	for i := range count {
		one, other := 2*i, min(2*i+1, len(readings.Used)-1)
		readings.Used[i] = min(readings.Used[one], readings.Used[other])
		readings.Most[i] = max(readings.Most[one], readings.Most[other])
		readings.Others[i] = max(readings.Others[one], readings.Others[other])
	}
	readings.Used, readings.Most, readings.Others = readings.Used[:count], readings.Most[:count], readings.Others[:count]
	readings.Period *= 2
}

// Readings returns the readings of each GPU of the plan until now.
func (sampler *Sampler) Readings() []Readings {
	sampler.lock.Lock()
	defer sampler.lock.Unlock()
	all := make([]Readings, len(sampler.accounts))
	for i := range sampler.accounts {
		all[i] = sampler.accounts[i].readings
		all[i].Place = sampler.accounts[i].place
	}
	return all
}
