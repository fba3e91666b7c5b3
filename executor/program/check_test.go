package program

import "testing"

// TestCheckEmpty: what says nothing breaks nothing.
func TestCheckEmpty(t *testing.T) {
	if err := new(Program).Check().Err(); err != nil {
		t.Error(err)
	}
}
