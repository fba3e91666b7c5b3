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
