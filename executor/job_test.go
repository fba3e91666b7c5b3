package executor_test

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor"
)

// TestVocabulary: ids are of the table of words, not of a vision tower's
// positions.
func TestVocabulary(t *testing.T) {
	job := jobOf(t, "gemma3", inference, 1)
	if _, err := executor.ReadTokens("ids", strings.NewReader("[0,89,88,87,86,85,84,83]"), job); err != nil {
		t.Error(err)
	}
	if _, err := executor.ReadTokens("ids", strings.NewReader("[0,90,88,87,86,85,84,83]"), job); err == nil {
		t.Error("90 is no id of a vocabulary of 90")
	}
}
