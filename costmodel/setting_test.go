package costmodel_test

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

func ExampleMessagef() {
	inner := costmodel.Messagef("%v does", costmodel.Setting{Field: "strategy", Value: "pipeline"})
	m := costmodel.Messagef("%d runs need %v (%v)", 2, costmodel.Setting{Field: "virtual_stages"}, inner)
	fmt.Println(m)
	fmt.Println(m.Words(func(s costmodel.Setting) string { return "--" + s.Field + " " + s.Value }))
	// Output:
	// 2 runs need virtual_stages (strategy=pipeline does)
	// 2 runs need --virtual_stages  (--strategy pipeline does)
}

// TestMessageAgain: telling a message in one way leaves it as it was.
func TestMessageAgain(t *testing.T) {
	m := costmodel.Messagef("%v", costmodel.Setting{Field: "mode", Value: "train"})
	m.Words(func(costmodel.Setting) string { return "x" })
	if got := m.String(); got != "mode=train" {
		t.Errorf("%q", got)
	}
}
