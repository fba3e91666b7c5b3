package page

import "github.com/devmap-dev/devmap/planner/devicemap"

// reasons says what limits a plan, and what would change it.
type reasons struct {
	Limit    string   `json:"limit,omitzero"`
	Bound    []string `json:"bound,omitzero"`
	Changes  []Change `json:"changes,omitzero"`
	Note     string   `json:"note,omitzero"`
	Front    *front   `json:"front,omitzero"`
	Now      *Now     `json:"now,omitzero"`
	Warnings []string `json:"warnings,omitzero"`
}

// Change is a change of the command, tried.
type Change struct {
	Text    string `json:"text"`
	Command string `json:"command,omitzero"`
	Effect  string `json:"effect"`
	Fits    bool   `json:"fits"`
	// Verdict is fits, tight or no. PeakBytes are of the GPU with the largest share.
	Verdict   devicemap.Verdict `json:"verdict"`
	PeakBytes int64             `json:"peak_bytes,omitzero"`
	Seconds   *float64          `json:"seconds,omitzero"`
}

// front are the maps between the shortest step and the smallest peak.
type front struct {
	X      string  `json:"x"`
	Y      string  `json:"y"`
	Points []Point `json:"points"`
}

// Point is a map of a front.
type Point struct {
	Seconds   float64 `json:"seconds"`
	PeakBytes int64   `json:"peak_bytes"`
	Label     string  `json:"label"`
	Chosen    bool    `json:"chosen,omitzero"`
}

// Now is the map that the engine makes without a plan.
type Now struct {
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
