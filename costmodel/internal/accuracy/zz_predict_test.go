package accuracy_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestZZPredict(t *testing.T) {
	text, err := os.ReadFile(os.Getenv("CASES"))
	if err != nil {
		t.Skip()
	}
	for _, name := range strings.Fields(string(text)) {
		read := trainerRow{Case: name}
		row := newNativeRow(t, &read)
		got, at, _ := row.predicted(t)
		fmt.Printf("ROW {\"case\": %q, \"predicted\": %d, \"at\": %q}\n", name, got, at)
	}
}
