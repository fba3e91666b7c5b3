package devicemap

// What tests look at that is no API.
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
