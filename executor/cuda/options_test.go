package cuda

import "testing"

// Options that are none are refused by name, before a driver is looked for.
func TestOptions(t *testing.T) {
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{}, ""},
		{Options{Transport: Host, Fault: Fault{CorruptPath, 3}}, ""},
		{Options{Transport: "smoke"}, `transport "smoke": it is auto, peer or host`},
		{Options{Fault: Fault{"flood", 1}}, `fault "flood": it is oom@map, corrupt@path, hang@step or lose@step`},
		{Options{Fault: Fault{"", 2}}, `fault "": it is oom@map, corrupt@path, hang@step or lose@step`},
		{Options{Fault: Fault{Kind: HangStep}}, `fault hang@step:0: it is counted from 1`},
	} {
		got := ""
		if err := test.options.check(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%+v: %q, want %q", test.options, got, test.want)
		}
	}
}
