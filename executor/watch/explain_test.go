package watch

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

const (
	testMiB = 1 << 20
	testGiB = 1 << 30
)

// predicted are 10 GiB on each of two GPUs, 0.25 to 0.75 GiB of slack, 0.5 GiB of
// overhead.
func predicted() *devicemap.Plan {
	plan := &devicemap.Plan{Devices: make([]devicemap.Prediction, 2)}
	for i := range plan.Devices {
		plan.Devices[i] = devicemap.Prediction{Device: i, Predicted: devicemap.Predicted{
			PeakAllocatedBytes: 10 * testGiB, OverheadBytes: testGiB / 2, SlackBytes: [2]int64{testGiB / 4, 3 * testGiB / 4}, DeviceUsedBytes: 11 * testGiB,
		}}
	}
	return plan
}

// measuredOf is one process that has 0.5 GiB beyond what it allocated in its pool.
func measuredOf(device int, allocated, used int64) Measured {
	torch := &OnGPU{Processes: 1, Allocated: Peak{allocated, allocated}, Reserved: Peak{allocated + testGiB/2, allocated + testGiB/2}}
	return Measured{Device: device, Torch: torch, Used: &used, Interval: 50 * time.Millisecond}
}

// TestExplain: the words for every part of a difference, and that what is not
// known is said not to be.
func TestExplain(t *testing.T) {
	t.Parallel()
	const asPredicted = "torch allocated 10.00 GiB at most, as predicted to the byte"
	const pool = "torch's pool took 512.0 MiB beyond that from the driver: the plan allows for 256.0 MiB to 768.0 MiB"
	const outside = "512.0 MiB or more were outside the pool (context, kernels, libraries), as predicted to the byte"
	for _, is := range []struct {
		name     string
		measured func() Measured
		warning  string
		parts    [3]any // allocated, cache, outside: nil is not known
		want     []string
	}{
		{"as predicted", func() Measured { return measuredOf(0, 10*testGiB, 11*testGiB) }, "", [3]any{0, 0, 0}, []string{asPredicted, pool, outside}},
		{"near", func() Measured { return measuredOf(0, 10*testGiB-4*testMiB, 11*testGiB) }, "every peak may be 10% lower or higher", [3]any{-4 * testMiB, 0, 4 * testMiB}, []string{
			"torch allocated 10.00 GiB at most, as predicted (10.00 GiB, 0.039 % apart)", pool,
			"516.0 MiB or more were outside the pool (context, kernels, libraries), 4.0 MiB (0.78 %) more than the 512.0 MiB predicted",
		}},
		{"more", func() Measured { return measuredOf(0, 11*testGiB, 12*testGiB) }, "", [3]any{testGiB, 0, 0}, []string{"torch allocated 11.00 GiB at most, 1.00 GiB (10 %) more than the 10.00 GiB predicted", pool, outside}},
		{"less", func() Measured { return measuredOf(0, 8*testGiB, 9*testGiB) }, "", [3]any{-2 * testGiB, 0, 0}, []string{"torch allocated 8.00 GiB at most, 2.00 GiB (20 %) less than the 10.00 GiB predicted", pool, outside}},
		{"a warning of as much", func() Measured { return measuredOf(0, 9*testGiB, 10*testGiB) }, "nobody knows: every peak may be 10% lower or higher", [3]any{-testGiB, 0, 0}, []string{
			"torch allocated 9.00 GiB at most, 1.00 GiB (10 %) less than the 10.00 GiB predicted",
			"the plan warned of as much: nobody knows: every peak may be 10% lower or higher", pool, outside,
		}},
		{"a warning of less", func() Measured { return measuredOf(0, 12*testGiB, 13*testGiB) }, "some GPUs also keep the old ones, and their peak is up to 1.50 GiB higher", [3]any{2 * testGiB, 0, 0}, []string{
			"torch allocated 12.00 GiB at most, 2.00 GiB (20 %) more than the 10.00 GiB predicted",
			"the plan warned of 1.50 GiB of it: some GPUs also keep the old ones, and their peak is up to 1.50 GiB higher", pool, outside,
		}},
		{"a warning of the other direction", func() Measured { return measuredOf(0, 8*testGiB, 9*testGiB) }, "some GPUs also keep the old ones, and their peak is up to 1.50 GiB higher", [3]any{-2 * testGiB, 0, 0}, []string{
			"torch allocated 8.00 GiB at most, 2.00 GiB (20 %) less than the 10.00 GiB predicted", pool, outside,
		}},
		{"a warning of another GPU", func() Measured { return measuredOf(1, 11*testGiB, 12*testGiB) }, "that all 2 ranks load without map_location puts 2.00 GiB on GPU 0", [3]any{testGiB, 0, 0}, []string{
			"torch allocated 11.00 GiB at most, 1.00 GiB (10 %) more than the 10.00 GiB predicted", pool, outside,
		}},
		{"a warning without a number", func() Measured { return measuredOf(0, 11*testGiB, 12*testGiB) }, "activations of these are not counted, so peaks are lower bounds", [3]any{testGiB, 0, 0}, []string{
			"torch allocated 11.00 GiB at most, 1.00 GiB (10 %) more than the 10.00 GiB predicted",
			"the plan warned of such a difference: activations of these are not counted, so peaks are lower bounds", pool, outside,
		}},
		{"a spike between readings", func() Measured { return measuredOf(0, 10*testGiB, 10*testGiB) }, "", [3]any{0, 0, nil}, []string{
			asPredicted, pool, "no reading, 50ms apart, met the peak of torch's pool (10.00 GiB were read at most): what is outside it is not known",
		}},
		{"fragmentation", func() Measured {
			one := measuredOf(0, 10*testGiB, 14*testGiB)
			one.Torch.Reserved = Peak{13 * testGiB, 13 * testGiB}
			return one
		}, "", [3]any{0, 5 * testGiB / 2, testGiB / 2}, []string{
			asPredicted,
			"torch's pool took 3.00 GiB beyond that from the driver (blocks that are free, or cut in pieces): the plan allows for 256.0 MiB to 768.0 MiB, so 2.25 GiB more",
			"1.00 GiB or more were outside the pool (context, kernels, libraries), 512.0 MiB (100 %) more than the 512.0 MiB predicted",
		}},
		{"no torch", func() Measured { one := measuredOf(0, 0, 12*testGiB); one.Torch = nil; return one }, "", [3]any{}, []string{
			"torch's allocated memory is unknown: the difference is not split into allocated and cached memory",
			"12.00 GiB were held in a reading at most, readings 50ms apart, and 11.00 GiB were predicted",
		}},
		{"no processes", func() Measured { one := measuredOf(0, 10*testGiB, 0); one.Used = nil; return one }, "", [3]any{0, 0, nil}, []string{
			asPredicted, pool, "the command's memory outside torch is unknown: the memory of each process on the GPU is not reported",
		}},
		{"two processes", func() Measured {
			one := measuredOf(0, 10*testGiB, 11*testGiB)
			one.Torch.Processes, one.Torch.Allocated.Low = 2, 6*testGiB
			return one
		}, "", [3]any{}, []string{
			"torch allocated at least 6.00 GiB in one of 2 processes, and at most 10.00 GiB in all, whose peaks need not have been at one moment: the difference is not split",
			"11.00 GiB were held in a reading at most, readings 50ms apart, and 11.00 GiB were predicted",
		}},
		{"killed, out of memory, others", func() Measured {
			one := measuredOf(0, 10*testGiB, 11*testGiB)
			one.Torch.Killed, one.Torch.OutOfMemory, one.Torch.Wanted, one.OfDevice = 1, 2, 3*testGiB, true
			return one
		}, "", [3]any{0, 0, 0}, []string{
			asPredicted, "a process was killed: a peak of its last half second is in no figure", "2 allocations found no memory (the last wanted 3.00 GiB): the peak is what there was room for", pool,
			"512.0 MiB were outside the pool, what other processes held may be among it (context, kernels, libraries), as predicted to the byte",
		}},
	} {
		plan := predicted()
		plan.Warnings = []string{is.warning}
		got := Explain(plan, []Measured{is.measured()}, nil)
		if len(got) != 1 || !slices.Equal(got[0].Reasons, is.want) {
			t.Errorf("%s:\n%s\nwant\n%s", is.name, strings.Join(got[0].Reasons, "\n"), strings.Join(is.want, "\n"))
			continue
		}
		for i, part := range []*int64{got[0].AllocatedBytes, got[0].CacheBytes, got[0].OutsideBytes} {
			if want, known := is.parts[i].(int); known != (part != nil) || known && *part != int64(want) {
				t.Errorf("%s: part %d is %v, want %v", is.name, i, part, is.parts[i])
			}
		}
	}
}

// TestVariants: settings are named that predict every GPU, and no others.
func TestVariants(t *testing.T) {
	t.Parallel()
	plan := predicted()
	variant := func(setting string, first, second int64) Variant {
		other := predicted()
		other.Devices[0].Predicted.PeakAllocatedBytes, other.Devices[1].Predicted.PeakAllocatedBytes = first, second
		return Variant{Setting: setting, Devices: other.Devices, Changes: 1}
	}
	variants := []Variant{
		variant("--one", 12*testGiB, 13*testGiB+testMiB), variant("--other", 12*testGiB, 10*testGiB),
		variant("--same as one", 12*testGiB, 13*testGiB), variant("--farther", 12*testGiB+10*testMiB, 13*testGiB), variant("--fourth", 12*testGiB+11*testMiB, 13*testGiB+12*testMiB),
	}
	got := Explain(plan, []Measured{measuredOf(0, 12*testGiB, 13*testGiB), measuredOf(1, 13*testGiB, 14*testGiB)}, yielding(slices.Values(variants)))
	if len(got) != 2 {
		t.Fatal(got)
	}
	for i, want := range []string{
		"with --one the same plan would predict 12.00 GiB, 0 % from what was allocated, and be as near on every GPU",
		"with --same as one the same plan would predict 13.00 GiB, 0 % from what was allocated, and be as near on every GPU",
	} {
		if reasons := got[i].Reasons; reasons[1] != want || strings.Count(strings.Join(reasons, " "), "with --") != 3 || strings.Contains(strings.Join(reasons, " "), "--other") {
			t.Errorf("%q, want %q second", reasons, want)
		}
	}
	hardly := yielding(slices.Values([]Variant{variant("--hardly", 10*testGiB+5*testMiB, 10*testGiB)}))
	got = Explain(plan, []Measured{measuredOf(0, 10*testGiB+20*testMiB, 11*testGiB)}, hardly)
	if reasons := strings.Join(got[0].Reasons, " "); strings.Contains(reasons, "--hardly") || !strings.Contains(reasons, "none of 1 other settings, alone or together, predicts what was allocated on every GPU") {
		t.Errorf("%q", got[0].Reasons)
	}
	unasked := func() (iter.Seq[Variant], error) {
		t.Error("a prediction that held asks for variants")
		return nil, nil
	}
	if got := Explain(plan, []Measured{measuredOf(0, 10*testGiB, 11*testGiB)}, unasked); len(got) != 1 {
		t.Error(got)
	}
}

func yielding(variants iter.Seq[Variant]) func() (iter.Seq[Variant], error) {
	return func() (iter.Seq[Variant], error) { return variants, nil }
}

// TestFewestChanges: if one change explains the peak, two changes are not tried. Small additional
// processes hide nothing. If nothing was tried, the reason is reported.
func TestFewestChanges(t *testing.T) {
	t.Parallel()
	plan := predicted()
	other := func(setting string, changes int, peak int64) Variant {
		devices := predicted().Devices[:1]
		devices[0].Predicted.PeakAllocatedBytes = peak
		return Variant{setting, devices, changes}
	}
	several := measuredOf(0, 12*testGiB, 13*testGiB)
	several.Torch.Processes, several.Torch.Allocated = 2, Peak{12 * testGiB, 12*testGiB + 300*testMiB}
	for _, is := range []Measured{measuredOf(0, 12*testGiB, 13*testGiB), several} {
		asked := 0
		got := Explain(plan, []Measured{is}, yielding(func(yield func(Variant) bool) {
			for _, one := range []Variant{other("--far", 1, 11*testGiB), other("--near", 1, 12*testGiB+4*testMiB), other("--one --two", 2, 12*testGiB), other("--no more", 2, 12*testGiB)} {
				asked++
				if !yield(one) {
					return
				}
			}
		}))
		reasons := strings.Join(got[0].Reasons, "; ")
		if asked != 3 || !strings.Contains(reasons, "with --near the same") || strings.Contains(reasons, "--one") || strings.Contains(reasons, "--far") {
			t.Errorf("%d asked: %s", asked, reasons)
		}
	}
	got := Explain(plan, []Measured{several}, func() (iter.Seq[Variant], error) { return nil, errors.New("the model is gone") })
	if reasons := strings.Join(got[0].Reasons, "; "); !strings.Contains(reasons, "other settings were not tried: the model is gone") {
		t.Error(reasons)
	}
}
