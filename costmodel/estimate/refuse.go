package estimate

import "github.com/devmap-dev/devmap/costmodel"

// refuse is the error that a field has a value which does not go with the rest
// of the workload or with the model.
func refuse(field string, value any, format string, args ...any) error {
	return costmodel.Refuse(costmodel.Set(field, value), format, args...)
}
