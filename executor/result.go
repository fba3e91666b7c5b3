package executor

// Result is what a run measured.
type Result struct {
	Backend string
	Steps   []StepResult
	// StepSeconds is the median of the steps after the first, or of the only
	// one; 0 if none ran.
	StepSeconds float64
	// FirstTokenSeconds is from a step's beginning until the host has the first ids of all its
	// sequences, the median as StepSeconds; 0 if nothing is generated.
	FirstTokenSeconds float64
	// TokensPerSecond of training and forwards is a step's tokens over StepSeconds. For generation
	// it is the tokens after each sequence's first over the time from the prompts' last logits on.
	// If there is one token a sequence, it is these over StepSeconds. 0: nothing was measured.
	TokensPerSecond float64
	// Tokens are the generated ids of every sequence of all steps.
	Tokens [][]int32
	// Stopped: a step ended before its program did, because every sequence had reached a stop id.
	Stopped bool
	Devices []DeviceResult // as Program.Devices
	// Growth is the most bytes by which the process grew since before arenas were reserved; -1: the
	// machine does not report it.
	Growth int64
	// Loading is the transfer of all parameters on a machine that is an [Uploader]; nil on others.
	Loading *Transfer
	// Turn says how the turn began and ended.
	Turn struct {
		Woken, Asleep bool // it began with a wake; it ended with a sleep
		// Start is everything that was loaded or woken, and End what was copied to be kept. Both
		// include the time of everything around the copies. Start's is the sum of MapSeconds, until
		// everything was mapped and prepared, and CopySeconds.
		Start, End              Transfer
		MapSeconds, CopySeconds float64
	}
	// GPUs are the GPUs with arenas; none on other machines.
	GPUs []GPUResult
	// Links are the links that messages used; none if they are copies in one memory.
	Links []Link
}

// StepResult is one step.
type StepResult struct {
	Number int64
	Loss   float64 // before the update; of training
	Times  Times
}

// DeviceResult is the state of a device's arena after the run. Before it, every byte was Poison.
type DeviceResult struct {
	Device int32 // of the plan
	// Touched is the end of the highest byte that lost its poison.
	Touched int64
	Regions []RegionResult
	Gaps    []Gap
	// Stray is how many bytes outside of all buffers lost their poison.
	Stray int64
}

// RegionResult is a region of an arena: what was planned, and the end of its
// highest byte that lost its poison.
type RegionResult struct {
	Name                       string
	PlannedBytes, TouchedBytes int64
}

// Gap is how many bytes of a buffer were never written, and their purpose. Room between buffers has
// no buffer.
type Gap struct {
	Buffer, Reason string
	Bytes          int64
	Missed         bool // it is the place of values, which no kernel wrote
}
