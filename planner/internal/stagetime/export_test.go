package stagetime

import (
	"context"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Step returns the step of cuts by the search's sums, and their map.
func Step(in *instance.Instance, cuts []int) (float64, devicemap.Map, error) {
	items, err := in.Items()
	if err != nil {
		return 0, nil, err
	}
	peaks := instance.NewStagePeaks(items)
	return newPipeCosts(peaks).step(cuts), peaks.Map(cuts, nil), nil
}

// Balanced returns the answer for a problem too large for the tables of the search.
func Balanced(ctx context.Context, in *instance.Instance) (*instance.Answer, error) {
	s, err := newPipes(ctx, in)
	if err != nil {
		return nil, err
	}
	return s.balanced(ctx, in.Caps)
}

// Tables reports whether the tables of the search were made before the context
// ended.
func Tables(ctx context.Context, in *instance.Instance) (made bool, err error) {
	pipeline, err := newPipes(context.Background(), in)
	return err == nil && pipeline.searchOf(ctx, 0, in.Caps) != nil, err
}
