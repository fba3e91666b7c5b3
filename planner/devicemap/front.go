package devicemap

import "github.com/devmap-dev/devmap/costmodel"

// FrontVersion is the format of a front file.
const FrontVersion = "devmap.front/v1"

// FrontFile is the front file: the maps of which none is better in both the
// step and the largest share, the shortest step first.
type FrontFile struct {
	FormatVersion string             `json:"format_version"`
	Model         Model              `json:"model"`
	Workload      costmodel.Workload `json:"workload"`
	Topology      costmodel.Topology `json:"topology"`
	// Complete: every point is proved, and there are no others.
	Complete bool         `json:"complete"`
	Points   []FrontPoint `json:"points"`
	Warnings []string     `json:"warnings"`
}

// FrontPoint is one map of a front. Its objective is the step, in seconds.
type FrontPoint struct {
	StepSeconds  float64      `json:"step_seconds"`
	LargestShare float64      `json:"largest_share"`
	Imbalance    float64      `json:"imbalance"`
	Objective    Objective    `json:"objective"`
	DeviceMap    Flat         `json:"device_map,omitzero"`
	Stages       []Stage      `json:"stages,omitzero"`
	Devices      []Prediction `json:"devices"`
}
