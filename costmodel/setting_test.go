package costmodel_test

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

func ExampleMessagef() {
	inner := costmodel.Messagef("%v does", costmodel.Setting{Field: "strategy", Value: "pipeline"})
	message := costmodel.Messagef("%d runs need %v (%v)", 2, costmodel.Setting{Field: "virtual_stages"}, inner)
	fmt.Println(message)
	fmt.Println(message.Words(func(setting costmodel.Setting) string { return "--" + setting.Field + " " + setting.Value }))
	// Output:
	// 2 runs need virtual_stages (strategy=pipeline does)
	// 2 runs need --virtual_stages  (--strategy pipeline does)
}

// TestMessageAgain: telling a message in one way leaves it as it was.
func TestMessageAgain(t *testing.T) {
	message := costmodel.Messagef("%v", costmodel.Setting{Field: "mode", Value: "train"})
	message.Words(func(costmodel.Setting) string { return "x" })
	if got := message.String(); got != "mode=train" {
		t.Errorf("%q", got)
	}
}
