package steptime

// deviceClock is the time of a device, and of the host that issues kernels to it, in seconds. The
// host does not wait: it issues kernels ahead of the device, which runs them one after the other.
type deviceClock struct{ Host, Device float64 }

// run is a pass that the host issues in issue seconds, and that takes the device length seconds. It
// ends when the device is through with it, and not before the host has issued its last kernel.
func (clock *deviceClock) run(issue, length float64) {
	clock.Host += issue
	clock.Device = max(clock.Device+length, clock.Host)
}

// await is an input that the device, but not its host, waits for.
func (clock *deviceClock) await(ready float64) { clock.Device = max(clock.Device, ready) }

// round is passes in sequence on one clock: of a micro-batch, or of a token. It begins at 0.
type round struct {
	deviceClock
	worked float64 // the sum over the passes, as Host is of issue times
	passes int
	// waited is how many passes had begun at the device's last wait for the host, beyond rounding.
	waited int
}

func (r *round) pass(issue, length float64) {
	through := r.Device + length
	r.run(issue, length)
	r.worked += length
	r.passes++
	if r.Host-through > 1e-15*r.Host {
		r.waited = r.passes
	}
}

// repeated is the end of count rounds like this: the slower of host and device sets the pace.
func (r *round) repeated(rounds float64) float64 {
	return r.Device + (rounds-1)*max(r.Host, r.worked)
}
