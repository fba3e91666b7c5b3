package executor

// Result is what a run measured.
type Result struct {
	Backend string
	Steps   []StepResult
	// StepSeconds is the median of the steps after the first, or of the only
	// one; 0 if none ran.
	StepSeconds float64
	// TokensPerSecond of training and forwards is a step's tokens over StepSeconds. Of
	// generation it is the tokens after each sequence's first over the time from the
	// prompts' last logits on. If there is one token a sequence, it is
	// these over StepSeconds. 0: nothing was measured.
	TokensPerSecond float64
	// Tokens are the generated ids of every sequence of all steps.
	Tokens [][]int32
	// Stopped: a step ended before its program did, since every sequence had
	// come to a stop id.
	Stopped bool
	Devices []DeviceResult // as Program.Devices
	// Growth is by how many bytes the process grew at most, beyond what it had
	// before arenas were reserved; -1: the machine does not say.
	Growth int64
	// Loading is the values of all parameters on a machine that is an [Uploader]; nil on
	// others.
	Loading *Transfer
	// Turn is how the turn began and ended.
	Turn struct {
		Woken, Asleep bool // it began with a wake; it ended with a sleep
		// Start is what was loaded or woken, all of it, and End what was copied to be
		// retained. Both include the time of everything around the copies. Start's is the
		// sum of MapSeconds, until all was mapped and prepared, and CopySeconds.
		Start, End              Transfer
		MapSeconds, CopySeconds float64
	}
	// GPUs are those that the arenas were on; none on other machines.
	GPUs []GPUResult
	// Links are those that messages went over; none where they are copies in one
	// memory.
	Links []Link
}

// StepResult is one step.
type StepResult struct {
	Number int64
	Loss   float64 // before the update; of training
	Times  Times
}

// DeviceResult is what became of a device's arena, which was Poison from end to
// end.
type DeviceResult struct {
	Device int32 // of the plan
	// Touched is the end of the highest byte that lost its poison.
	Touched int64
	Regions []RegionResult
	Gaps    []Gap
	// Stray is how many bytes lost their poison that no buffer has.
	Stray int64
}

// RegionResult is a region of an arena: what was planned, and the end of its
// highest byte that lost its poison.
type RegionResult struct {
	Name                       string
	PlannedBytes, TouchedBytes int64
}

// Gap is how many bytes of a buffer were never written, and what they are there
// for; room between buffers has no buffer.
type Gap struct {
	Buffer, Reason string
	Bytes          int64
	Missed         bool // it is the place of values, which no kernel wrote
}
