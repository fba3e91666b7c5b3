package offload

import (
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Average is the share that no map is below, whatever leaves.
func Average(in *instance.Instance) (float64, error) {
	s, err := newSearch(in)
	if err != nil {
		return 0, err
	}
	return s.average(), nil
}
