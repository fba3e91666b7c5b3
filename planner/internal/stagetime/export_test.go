package stagetime

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Balanced is the answer where the tables of the search would be too large.
func Balanced(ctx context.Context, in *instance.Instance) (*instance.Answer, error) {
	s, err := newPipes(ctx, in)
	if err != nil {
		return nil, err
	}
	return s.balanced(ctx, in.Caps)
}
