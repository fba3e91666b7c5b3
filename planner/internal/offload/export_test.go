package offload

import (
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Average returns a lower bound of the largest share, for any offloaded units.
func Average(in *instance.Instance) (float64, error) {
	s, err := newSearch(in)
	if err != nil {
		return 0, err
	}
	return s.average(), nil
}
