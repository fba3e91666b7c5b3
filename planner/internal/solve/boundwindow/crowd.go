package boundwindow

import "github.com/devmap-dev/devmap/planner/internal/solve/graph"

// crowd says what the windows of all items together leave to each: what must lie
// within some stages must fit them (energetic reasoning: Baptiste, Le Pape and
// Nuijten, Constraint-Based Scheduling, 2001). An item that is after a boundary
// takes all that comes after it along, beside what is there anyway, whatever that
// comes after; where it does not fit, the item is before the boundary.
type crowd struct {
	*form
	within       *windows
	limit, bytes float64
	// time and size are the sums of what must lie within stages i to j, at
	// i × stages + j.
	time, size []float64
	// ofTime and ofSize are those of one item's cone, by the other end.
	ofTime, ofSize []float64
}

// crowded narrows the windows; it is not ok where some stages have too much.
func (form *form) crowded(within *windows, limit float64) (changed, ok bool) {
	square := form.stages * form.stages
	of := &crowd{
		form: form, within: within, limit: limit * (1 + graph.Rounding), bytes: form.room * (1 + graph.Rounding),
		time: make([]float64, square), size: make([]float64, square), ofTime: make([]float64, form.stages), ofSize: make([]float64, form.stages),
	}
	if !of.sum() {
		return false, false
	}
	for item := range within.first {
		for last := &within.last[item]; *last > within.first[item] && !of.after(item, *last-1); changed = true {
			*last--
		}
		for first := &within.first[item]; *first < within.last[item] && !of.before(item, *first); changed = true {
			*first++
		}
	}
	return changed, true
}

// sum adds up what must lie within each row of stages; false where it does not fit.
func (of *crowd) sum() bool {
	for item, first := range of.within.first {
		at := first*of.stages + of.within.last[item]
		of.time[at] += of.form.time[item]
		of.size[at] += of.form.size[item]
	}
	for i := of.stages - 1; i >= 0; i-- {
		time, size := 0.0, 0.0 // of what begins at i
		for j := i; j < of.stages; j++ {
			at := i*of.stages + j
			time, size = time+of.time[at], size+of.size[at]
			of.time[at], of.size[at] = time, size
			if i < j {
				of.time[at] += of.time[at+of.stages]
				of.size[at] += of.size[at+of.stages]
			}
			if !of.fits(of.time[at], of.size[at], j-i+1) {
				return false
			}
		}
	}
	return true
}

func (of *crowd) fits(time, size float64, stages int) bool {
	return time <= float64(stages)*of.limit && size <= float64(stages)*of.bytes
}

// after says whether an item can be after a boundary.
func (of *crowd) after(item, boundary int) bool {
	clear(of.ofTime)
	clear(of.ofSize)
	each(of.cones.after[item], func(other int) {
		if of.within.first[other] <= boundary {
			of.ofTime[of.within.last[other]] += of.form.time[other]
			of.ofSize[of.within.last[other]] += of.form.size[other]
		}
	})
	time, size := 0.0, 0.0
	for j := boundary + 1; j < of.stages; j++ {
		time, size = time+of.ofTime[j], size+of.ofSize[j]
		at := (boundary+1)*of.stages + j
		if !of.fits(of.time[at]+time, of.size[at]+size, j-boundary) {
			return false
		}
	}
	return true
}

// before says whether an item can be before a boundary.
func (of *crowd) before(item, boundary int) bool {
	clear(of.ofTime)
	clear(of.ofSize)
	each(of.cones.before[item], func(other int) {
		if of.within.last[other] > boundary {
			of.ofTime[of.within.first[other]] += of.form.time[other]
			of.ofSize[of.within.first[other]] += of.form.size[other]
		}
	})
	time, size := 0.0, 0.0
	for i := boundary; i >= 0; i-- {
		time, size = time+of.ofTime[i], size+of.ofSize[i]
		at := i*of.stages + boundary
		if !of.fits(of.time[at]+time, of.size[at]+size, boundary-i+1) {
			return false
		}
	}
	return true
}
