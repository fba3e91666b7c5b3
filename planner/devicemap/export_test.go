package devicemap

// Tests look at these; they are not API.
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
)

// Fit judges predictions alone.
func Fit(devices []Prediction) ([]Fault, []string) {
	var check checker
	check.fit(devices)
	return check.faults, check.warnings
}
