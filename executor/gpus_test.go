package executor

import (
	"testing"
)

// TestOptions: unknown options are refused by name, before a driver is opened.
func TestOptions(t *testing.T) {
	for _, test := range []struct {
		options GPUOptions
		want    string
	}{
		{GPUOptions{}, ""},
		{GPUOptions{Transport: HostTransport, Fault: Fault{Kind: CorruptPath, At: 3}}, ""},
		{GPUOptions{Transport: "smoke"}, `transport "smoke": it is auto, peer or host`},
		{GPUOptions{Fault: Fault{"flood", 1}}, `fault "flood": it is oom@map, corrupt@path, hang@step or lose@step`},
		{GPUOptions{Fault: Fault{"", 2}}, `fault "": it is oom@map, corrupt@path, hang@step or lose@step`},
		{GPUOptions{Fault: Fault{Kind: HangStep}}, `fault hang@step:0: it is counted from 1`},
	} {
		got := ""
		if err := test.options.Check(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%+v: %q, want %q", test.options, got, test.want)
		}
	}
}
