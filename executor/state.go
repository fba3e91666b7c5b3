package executor

import "github.com/devmap-dev/devmap/executor/weights"

// State is what a run left behind ([Settings].Save.State).
type State struct {
	Step int64  // how many steps were done
	Seed uint64 // of the ids that were drawn
	// Tokens tells which file the ids were of; empty: they were drawn.
	Tokens string

	values weights.Source
}

// Close closes the state's files; an error is one that changed while it was read.
func (state *State) Close() error { return state.values.Close() }
