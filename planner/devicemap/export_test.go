package devicemap

import "github.com/devmap-dev/devmap/costmodel"

// Tests use these; they are not API.
const (
	UnknownModule    = unknownModule
	UnknownDevice    = unknownDevice
	DeviceNotANumber = deviceNotANumber
	TiesApart        = tiesApart
	NoDevice         = noDevice
	UnknownEngine    = unknownEngine
)

var (
	ReadFlat    = readFlat
	ImbalanceOf = imbalance
	ParseMap    = parseMap
	Settle      = (*Prediction).settle
	BandNotes   = bandNotes
)

// Judge returns the report of predictions alone.
func Judge(devices []Prediction, runtime string) *Report {
	var check checker
	report := &Report{Devices: devices}
	check.judge(report, &costmodel.Table{Workload: costmodel.Workload{Runtime: runtime}})
	return report
}
