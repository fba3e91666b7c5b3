package page

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// version is the format of the page's JSON block.
const version = "devmap.page/v1"

// Page is devmap.page/v1, the JSON block of a page. Times are in nanoseconds unless a field ends in
// _seconds or says otherwise. A name or label that is a number is an index into Names.
type Page struct {
	FormatVersion string     `json:"format_version"`
	Title         string     `json:"title"`
	Answer        answer     `json:"answer"`
	Facts         []fact     `json:"facts"`
	Categories    []category `json:"categories"`
	GPUs          []gpu      `json:"gpus"`
	Memory        []curve    `json:"memory"`
	MemoryNote    string     `json:"memory_note,omitzero"`
	Arenas        *arenas    `json:"arenas,omitzero"`
	Time          *lanes     `json:"time,omitzero"`
	Why           *reasons   `json:"why,omitzero"`
	Watch         *watched   `json:"watch,omitzero"`
	Run           *run       `json:"run,omitzero"`
	Phases        []phase    `json:"phases,omitzero"`
	Names         []string   `json:"names"`
	// Others are pages of further plans.
	Others []*Page `json:"others,omitzero"`

	index map[string]int // of Names
}

// answer says whether the plan fits, what is proved, and how a run compares.
type answer struct {
	Verdict  devicemap.Verdict `json:"verdict"`
	Sentence string            `json:"sentence"`
	Proof    string            `json:"proof,omitzero"`
	Run      string            `json:"run,omitzero"`
}

// fact is a line about the plan: its command, versions and digests.
type fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Copy  bool   `json:"copy,omitzero"` // it is a command
}

// category is a kind of memory.
type category struct {
	Key   string `json:"key"`
	Label string `json:"label"`
}

// The categories in their order in a stack. The last is of devmap's arenas only.
var categories = []category{
	{"params", "parameters"},
	{"optimizer_state", "optimizer state"},
	{"grads", "gradients"},
	{"activations", "activations"},
	{"kv_cache", "KV cache"},
	{"workspace", "workspace"},
	{"comm_buffers", "communication"},
	{"idle", "idle"},
}

const (
	ofParams = iota
	ofOptimizer
	ofGrads
	ofActivations
	ofCache
	ofWorkspace
	ofComm
	ofIdle
	categoryCount
)

// sizes are bytes by category.
type sizes [categoryCount]int64

func (sum *sizes) total() (all int64) {
	for _, part := range sum {
		all += part
	}
	return all
}

func byCategory(memory *costmodel.Memory) sizes {
	return sizes{
		ofParams: memory.Params, ofOptimizer: memory.OptimizerState, ofGrads: memory.Grads, ofActivations: memory.Activations,
		ofCache: memory.KVCache, ofWorkspace: memory.Workspace, ofComm: memory.CommBuffers,
	}
}

func predictedBytes(predicted *devicemap.Predicted) sizes {
	return sizes{
		ofParams: predicted.ParamsBytes, ofOptimizer: predicted.OptimizerStateBytes, ofGrads: predicted.GradsBytes, ofActivations: predicted.ActivationsBytes,
		ofCache: predicted.KVCacheBytes, ofWorkspace: predicted.WorkspaceBytes, ofComm: predicted.CommBuffersBytes,
	}
}

// gpu is a GPU of the plan.
type gpu struct {
	Device         int               `json:"device"`
	Name           string            `json:"gpu"`
	CapacityBytes  int64             `json:"capacity_bytes"`
	ReservedBytes  int64             `json:"reserved_bytes"`
	BudgetBytes    int64             `json:"budget_bytes"`
	Bytes          sizes             `json:"bytes"`
	PeakBytes      int64             `json:"peak_bytes"`
	PeakAt         string            `json:"peak_at"`
	PeakRangeBytes []int64           `json:"peak_range_bytes,omitzero"`
	AtLeast        bool              `json:"at_least,omitzero"`
	OverheadBytes  int64             `json:"overhead_bytes"`
	SlackBytes     [2]int64          `json:"slack_bytes"`
	UsedBytes      int64             `json:"used_bytes"`
	HeadroomBytes  int64             `json:"headroom_bytes"`
	Verdict        devicemap.Verdict `json:"verdict"`
	Modules        []module          `json:"modules,omitzero"`
	Memory         *int              `json:"memory,omitzero"`
	Measured       *measured         `json:"measured,omitzero"`
}

// module is what modules have on a GPU throughout.
type module struct {
	Name  int   `json:"name"`
	Bytes int64 `json:"bytes"`
	Units int   `json:"units"` // that are joined
}

// measured are a run's bytes of a GPU; nil: not known.
type measured struct {
	PeakAllocatedBytes *int64 `json:"peak_allocated_bytes,omitzero"`
	PeakReservedBytes  *int64 `json:"peak_reserved_bytes,omitzero"`
	DeviceUsedBytes    *int64 `json:"device_used_bytes,omitzero"`
	Note               string `json:"note,omitzero"`
}

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
	Stage  *int    `json:"stage,omitzero"`
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

// reasons says what limits a plan, and what would change it.
type reasons struct {
	Limit    string   `json:"limit,omitzero"`
	Bound    []string `json:"bound,omitzero"`
	Changes  []change `json:"changes,omitzero"`
	Note     string   `json:"note,omitzero"`
	Front    *front   `json:"front,omitzero"`
	Now      *now     `json:"now,omitzero"`
	Warnings []string `json:"warnings,omitzero"`
}

// change is a change of the command, tried.
type change struct {
	Text      string   `json:"text"`
	Command   string   `json:"command,omitzero"`
	Effect    string   `json:"effect"`
	Fits      bool     `json:"fits"`
	PeakBytes int64    `json:"peak_bytes,omitzero"`
	Seconds   *float64 `json:"seconds,omitzero"`
}

// front are the maps between the shortest step and the smallest peak.
type front struct {
	X      string  `json:"x"`
	Y      string  `json:"y"`
	Points []point `json:"points"`
}

type point struct {
	Seconds   float64 `json:"seconds"`
	PeakBytes int64   `json:"peak_bytes"`
	Label     string  `json:"label"`
	Chosen    bool    `json:"chosen,omitzero"`
}

// now is the map that the engine makes without a plan.
type now struct {
	Title   string   `json:"title"`
	Note    string   `json:"note,omitzero"`
	GPUs    []NowGPU `json:"gpus,omitzero"`
	Seconds *float64 `json:"seconds,omitzero"`
}

// NowGPU is a GPU under that map.
type NowGPU struct {
	Device      int               `json:"device"`
	PeakBytes   int64             `json:"peak_bytes"`
	BudgetBytes int64             `json:"budget_bytes"`
	Verdict     devicemap.Verdict `json:"verdict"`
}

// phase is a phase of a diffusion pipeline.
type phase struct {
	Name      string  `json:"name"`
	Component string  `json:"component"`
	Seconds   float64 `json:"seconds,omitzero"`
	GPUs      []gpu   `json:"gpus"`
}

// name returns the index of a name.
func (page *Page) name(text string) int {
	at, known := page.index[text]
	if !known {
		if page.index == nil {
			page.index = map[string]int{}
		}
		at = len(page.Names)
		page.index[text] = at
		page.Names = append(page.Names, text)
	}
	return at
}
