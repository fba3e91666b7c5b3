package page

// curve is the memory of equal GPUs over a step.
type curve struct {
	Title       string  `json:"title"`
	Devices     []int   `json:"devices"`
	Axis        string  `json:"axis"` // order or time
	Note        string  `json:"note,omitzero"`
	Moments     int     `json:"moments"` // before some were left out
	X           []int64 `json:"x"`
	Label       []int   `json:"label"`
	Total       []int64 `json:"total"`
	Bands       []band  `json:"bands"`
	BudgetBytes int64   `json:"budget_bytes"`
	Peak        int     `json:"peak"`
	Live        []alive `json:"live"`
}

// band is a category over the points of a curve: its bytes at each, or those at all.
type band struct {
	Category int     `json:"category"`
	Bytes    []int64 `json:"bytes,omitzero"`
	Constant int64   `json:"constant,omitzero"`
}

// alive is what is there at a peak.
type alive struct {
	Name     int    `json:"name"`
	What     string `json:"what,omitzero"`
	Category int    `json:"category"`
	Bytes    int64  `json:"bytes"`
	Count    int    `json:"count,omitzero"` // of buffers that are joined
}

// arenas are the arenas of devmap's own engine: addresses over time.
type arenas struct {
	Note  string   `json:"note,omitzero"`
	Maps  []arena  `json:"maps"`
	Kinds []string `json:"kinds"`
	// Categories has the category of each kind.
	Categories []int `json:"categories"`
}

type arena struct {
	Device    int   `json:"device"`
	SizeBytes int64 `json:"size_bytes"`
	Makespan  int64 `json:"makespan"`
	Peak      int64 `json:"peak"`
	Rects     rects `json:"rects"`
	Joined    int   `json:"joined,omitzero"`
	Idle      steps `json:"idle"`
}

// rects are buffers, one in each place of all slices.
type rects struct {
	Address []int64 `json:"address"`
	Bytes   []int64 `json:"bytes"`
	From    []int64 `json:"from"`
	To      []int64 `json:"to"`
	Kind    []int   `json:"kind"`
	Name    []int   `json:"name"`
}

// steps are values that each hold from X on.
type steps struct {
	X     []int64 `json:"x"`
	Bytes []int64 `json:"bytes"`
}

// lanes is the time of a step.
type lanes struct {
	Note        string     `json:"note,omitzero"`
	Unit        string     `json:"unit,omitzero"` // ns or forward
	Makespan    int64      `json:"makespan,omitzero"`
	StepSeconds *float64   `json:"step_seconds,omitzero"`
	Kinds       []string   `json:"kinds,omitzero"`
	Lanes       []lane     `json:"lanes,omitzero"`
	Waits       []wait     `json:"waits,omitzero"`
	Path        [][2]int   `json:"path,omitzero"`
	Phases      []duration `json:"phases,omitzero"`
}

// lane is a stream of a device. A gap of a compute lane is a bubble.
type lane struct {
	Device int     `json:"device"`
	Name   string  `json:"name"`
	Stream string  `json:"stream"`
	Busy   int64   `json:"busy"`
	Bubble int64   `json:"bubble,omitzero"`
	Start  []int64 `json:"start"`
	Length []int64 `json:"length"`
	Kind   []int   `json:"kind"`
	Batch  []int64 `json:"batch"`
	Label  []int   `json:"label,omitzero"`
}

// wait is a gap of a lane, and what it ends with.
type wait struct {
	Lane int   `json:"lane"`
	From int64 `json:"from"`
	To   int64 `json:"to"`
	For  int   `json:"for"`
}

// duration is the time of a phase of a diffusion pipeline.
type duration struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}
