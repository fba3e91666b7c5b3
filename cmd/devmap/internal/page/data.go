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
	Overhead      string     `json:"overhead,omitzero"`  // what overhead_bytes of GPUs are
	PeakOpen      bool       `json:"peak_open,omitzero"` // compilation leaves peaks open within their range
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
	UsualPeakBytes int64             `json:"usual_peak_bytes,omitzero"`
	AtLeast        bool              `json:"at_least,omitzero"`
	HostBytes      int64             `json:"host_bytes,omitzero"`
	OverheadBytes  int64             `json:"overhead_bytes"`
	SlackBytes     [2]int64          `json:"slack_bytes"`
	UsedBytes      int64             `json:"used_bytes"`
	HeadroomBytes  int64             `json:"headroom_bytes"`
	Verdict        devicemap.Verdict `json:"verdict"`
	Layers         string            `json:"layers,omitzero"` // of an engine that serves
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
