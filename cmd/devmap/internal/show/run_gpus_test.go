package show

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/modelgraph"
)

// ranOnGPUs returns the report of two devices that are parts of one GPU.
func ranOnGPUs() *report.Report {
	first, second, used, predicted, took, rate := 0, 1, int64(14<<30), 0.114, 0.128, 64000.0
	ran := &report.Report{Verdict: report.Pass, Reasons: []string{"as planned"}, Devices: []report.Device{{Device: 0}, {Device: 1}}}
	ran.GPUs = []report.GPU{{
		GPU: 3, Name: "NVIDIA H200", Devices: []int{0, 1}, PredictedUsedBytes: used + 2<<20, DeviceUsedBytes: &used,
		Measured: &report.GPUMemory{BeforeBytes: 3 << 20, ContextBytes: 503 << 20, ReadyBytes: used + 3<<20, Fences: 2, FenceLowBytes: used + 1<<20, FenceHighBytes: used + 3<<20, AfterBytes: 513 << 20},
	}}
	ran.Links = []report.Link{
		{To: &first, Transport: "host", CheckedBytes: 7},
		{From: &first, To: &second, Transport: "host", CheckedBytes: 2 << 20, StagingBytes: 16 << 20},
		{From: &second, To: &first, Transport: "peer", CheckedBytes: 1 << 20},
	}
	ran.Loading = &report.Loading{Bytes: 2 << 30, Seconds: 0.05, BytesPerSecond: 2 << 30 / 0.05}
	ran.Steps = []report.Step{{Step: 1, Devices: []report.DeviceTime{{Device: 0, Forward: 0.1}, {Device: 1, Forward: 0.1}}}}
	ran.StepSeconds.Predicted, ran.StepSeconds.Measured, ran.TokensPerSecond = &predicted, &took, &rate
	return ran
}

// TestArenasWidth: if all regions make the table too wide, they have a table of their own.
func TestArenasWidth(t *testing.T) {
	t.Parallel()
	ran := &report.Report{Devices: []report.Device{{Device: 0}}}
	for i := range regions {
		ran.Devices[0].Regions = append(ran.Devices[0].Regions, report.Region{Name: regions[i].name, PlannedBytes: 1234 << 10, TouchedBytes: 1234 << 10})
	}
	ran.Devices[0].Regions[0].TouchedBytes = 0
	rows := &runTables{Printer: &Printer{graph: &modelgraph.Graph{}, width: maxWidth}, Report: ran}
	for _, text := range []string{rows.arenas(), rows.legend()} {
		for line := range strings.Lines(text) {
			if width := len([]rune(strings.TrimRight(line, "\n"))); width > maxWidth {
				t.Errorf("%d columns: %s", width, line)
			}
		}
	}
	if text := rows.arenas(); !strings.Contains(text, "ratio\n") || strings.Count(text, "1.2 MiB") != len(regions) {
		t.Errorf("a table of peaks, and one of %d regions:\n%s", len(regions), text)
	}
}

// TestRunOnGPUs: the tables compare every GPU's usage, and the step, with the plan's.
func TestRunOnGPUs(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]struct {
		change func(ran *report.Report)
		want   []string
		not    string
	}{
		"parts of one": {
			func(*report.Report) {}, []string{
				" device  runs ", "\n   3  NVIDIA  0 1      14.00 GiB  14.00 GiB  −2.0 MiB  500.0 MiB   14.00 GiB  14.00 GiB   510.0 MiB\n",
				"\nmessages went by way of the host (0 to 1) and from memory to memory (1 to 0); before the first step each way carried 1.0 MiB as they were sent; 16.0 MiB of the host's memory were theirs\n",
				"a step took 128 ms (114 ms predicted for devices that share a GPU: +12", "\nloaded 2.00 GiB in 50 ms, 42.9 GB/s\n",
			}, "by turns",
		},
		"one each": {
			func(ran *report.Report) {
				other := ran.GPUs[0]
				other.GPU, other.Devices = 1, []int{1}
				ran.GPUs[0].GPU, ran.GPUs[0].Devices = 0, []int{0}
				ran.GPUs = append(ran.GPUs, other)
				ran.GPUs[1].Measured = nil
			},
			[]string{" GPU  runs ", "a step took 128 ms (114 ms predicted: +12.3 %)\n", "\n   1  NVIDIA H200  14.00 GiB          –         –          –           –          –           –\n"},
			"device",
		},
		"a cold file, and generation": {
			func(ran *report.Report) {
				ran.FirstTokenSeconds, ran.Loading.DiskBytes, ran.Loading.DiskBytesPerSecond = 0.021, 1<<30, 3.5e9
			},
			[]string{"42.9 GB/s; 1.00 GiB of it from the disk, 3.5 GB/s\n", " tokens/s; the first token took 21 ms; a step took 128 ms"},
			"by turns",
		},
		"the reference": {
			func(ran *report.Report) { ran.GPUs, ran.Links = nil, nil }, []string{" GPU  runs ", "predicted for the plan's GPUs: not judged"}, "messages",
		},
	} {
		ran := ranOnGPUs()
		is.change(ran)
		var text strings.Builder
		New(&text, &modelgraph.Graph{Name: "toy"}, costmodel.Workload{}).Run(nil, ran, "there")
		for _, want := range is.want {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, &text)
			}
		}
		if strings.Contains(text.String(), is.not) {
			t.Errorf("%s: %q in\n%s", name, is.not, &text)
		}
	}
}

// TestBrokenOff: a failed run's text names the run, its last step, and the cause.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	ran := ranOnGPUs()
	ran.BreakOff([]string{"in step 2 of 9: it was ended", "all was given back"})
	var text strings.Builder
	BrokenOff(&text, "toy on GPU 3", ran)
	ran.BreakOff([]string{"in step 2 of 9: it hangs", "stream 0: at line 4", "all was given back"})
	BrokenOff(&text, "toy on GPU 3", ran)
	const begins = "toy on GPU 3: failed\n1 step before that\nfail: in step 2 of 9: "
	if want := begins + "it was ended; all was given back\n" + begins + "it hangs\n  stream 0: at line 4\n  all was given back\n"; text.String() != want {
		t.Errorf("%s\nwant\n%s", &text, want)
	}
}
