package watch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/devmap-dev/devmap/executor/nvml"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

const mib = int64(1 << 20)

// fakeReader reads fake GPUs: what they hold follows from who is there.
type fakeReader struct {
	gpus  []GPU
	now   [][]nvml.Process // by GPU
	mute  bool             // it tells no process
	blank int64            // held by no process
	lost  error
	asked int

	followed []int
	when     time.Duration
}

func (reader *fakeReader) Source() Source { return Source{Name: "drawn", IntervalSeconds: 0.001} }
func (reader *fakeReader) GPUs() []GPU    { return reader.gpus }
func (reader *fakeReader) Close() error   { return nil }

func (reader *fakeReader) Follow(gpus []int) error {
	reader.followed = gpus
	return nil
}

func (reader *fakeReader) Take(each func(time.Duration, []int64)) error {
	used, all := make([]int64, len(reader.followed)), make([]int64, len(reader.gpus))
	if err := reader.Used(all); err != nil {
		return err
	}
	for i, gpu := range reader.followed {
		used[i] = all[gpu]
	}
	reader.when += time.Millisecond
	each(reader.when, used)
	return nil
}

func (reader *fakeReader) Used(into []int64) error {
	for i := range into {
		into[i] = reader.blank
		for _, process := range reader.now[i] {
			into[i] += process.Used
		}
	}
	return reader.lost
}

func (reader *fakeReader) Processes(gpu int) ([]nvml.Process, error) {
	reader.asked++
	if reader.mute {
		return nil, nil
	}
	return slices.Clone(reader.now[gpu]), nil
}

// machine is two GPUs, and a tree in which processes from 100 on are the command's,
// those below 50 other people's, and the rest not shown.
func machine() (*fakeReader, *Tree) {
	reader := &fakeReader{gpus: []GPU{{"GPU-aa", "H200", 1 << 37, false}, {"GPU-bb", "H200", 1 << 37, false}}, now: make([][]nvml.Process, 2)}
	tree := NewTree(100)
	proc := &shown{parents: map[int]int{100: 1, 101: 100, 102: 101, 20: 1, 21: 1}}
	tree.read = proc.read
	return reader, tree
}

func sampled(t *testing.T, reader *fakeReader, tree *Tree, attached bool) *Sampler {
	t.Helper()
	sampler := fixtures.Must(New(Settings{Reader: reader, Places: []Place{{At: 0, Number: 0, Devices: []int{0}}}, Whose: tree, Attached: attached}))(t)
	return sampler
}

func (sampler *Sampler) reads(t *testing.T) GPUState {
	t.Helper()
	if err := sampler.read(false); err != nil {
		t.Fatal(err)
	}
	return sampler.State()[0]
}

// TestWhose: a peak is the command's alone, whoever else comes and goes.
func TestWhose(t *testing.T) {
	t.Parallel()
	reader, tree := machine()
	reader.blank = 600 * mib
	reader.now[0] = []nvml.Process{{ID: 20, Used: 1000 * mib}}
	sampler := sampled(t, reader, tree, false)
	if state := sampler.State()[0]; state.CommandBytes != 0 || state.BeforeBytes != 1600*mib || state.Shown {
		t.Errorf("%+v", state)
	}
	reader.now[0] = append(reader.now[0], nvml.Process{ID: 101, Used: 300 * mib}, nvml.Process{ID: 102, Used: 200 * mib})
	if state := sampler.reads(t); state.CommandBytes != 500*mib || state.PeakBytes != 500*mib || state.Processes != 2 || state.Others != "" {
		t.Errorf("%+v", state)
	}
	// Another one comes in the moment between two lists: it is no peak of the command's.
	reader.now[0] = append(reader.now[0], nvml.Process{ID: 21, Used: 9000 * mib})
	state := sampler.reads(t)
	if state.CommandBytes != 500*mib || state.PeakBytes != 500*mib || state.BeforeBytes != 10600*mib || state.Others != "process 21 came, with 8.79 GiB" {
		t.Errorf("%+v", state)
	}
	// The first leaves, and the command continues.
	reader.now[0] = []nvml.Process{{ID: 101, Used: 700 * mib}, {ID: 21, Used: 9000 * mib}}
	sampler.asked = time.Time{}
	if state := sampler.reads(t); state.PeakBytes != 700*mib || state.Processes != 1 || state.Most != 2 {
		t.Errorf("%+v", state)
	}
}

// TestOthersMove: what is reported of other processes.
func TestOthersMove(t *testing.T) {
	t.Parallel()
	one := []nvml.Process{{ID: 20, Used: 100 * mib}}
	for name, test := range map[string]struct {
		now  []nvml.Process
		want string
	}{
		"still":        {[]nvml.Process{{ID: 20, Used: 110 * mib}}, ""},
		"grew":         {[]nvml.Process{{ID: 20, Used: 200 * mib}}, "process 20 went from 100.0 MiB to 200.0 MiB"},
		"left":         {nil, "process 20 left, which had 100.0 MiB"},
		"came":         {append(slices.Clone(one), nvml.Process{ID: 21, Used: -1}), "process 21 came, with an unknown amount of memory"},
		"ours":         {append(slices.Clone(one), nvml.Process{ID: 101, Used: 9 * mib}), ""},
		"not of here":  {append(slices.Clone(one), nvml.Process{ID: 77, Used: 9 * mib}), ""},
		"command only": {append(slices.Clone(one), nvml.Process{ID: 100, Used: -1}), ""},
	} {
		reader, tree := machine()
		reader.now[0] = one
		sampler := sampled(t, reader, tree, false)
		account := &sampler.accounts[0]
		account.look(test.now, nil, tree)
		if account.moved != test.want {
			t.Errorf("%s: %q, not %q", name, account.moved, test.want)
		}
	}
}

// TestForeign: a process that this machine does not show, and that came with the
// command, is the command's: so drivers tell those of containers. One that was there
// before is not.
func TestForeign(t *testing.T) {
	t.Parallel()
	reader, tree := machine()
	reader.now[0] = []nvml.Process{{ID: 70, Used: 100 * mib}}
	sampler := sampled(t, reader, tree, false)
	reader.now[0] = append(reader.now[0], nvml.Process{ID: 71, Used: 50 * mib})
	if state := sampler.reads(t); state.CommandBytes != 50*mib || state.Others != "" || state.Shown {
		t.Errorf("%+v", state)
	}
	// The same holds if no process is listed at all.
	reader, tree = machine()
	reader.mute, reader.blank = true, 10*mib
	sampler = sampled(t, reader, tree, false)
	reader.now[0] = []nvml.Process{{ID: 101, Used: 50 * mib}}
	if state := sampler.reads(t); state.CommandBytes != 50*mib || state.BeforeBytes != 10*mib || state.Shown {
		t.Errorf("%+v", state)
	}
}

// TestAttached: what was held before the watching is the command's as far as that is
// known, and else all but what others are said to hold.
func TestAttached(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mute bool
		own  int64
		want int64
	}{
		"told":         {false, 500 * mib, 500 * mib},
		"not how much": {false, -1, 609*mib - 100*mib}, // all but the other's
		"not who":      {true, 500 * mib, 1210 * mib},
	} {
		reader, tree := machine()
		reader.mute, reader.blank = test.mute, 610*mib
		reader.now[0] = []nvml.Process{{ID: 20, Used: 100 * mib}, {ID: 101, Used: test.own}}
		if test.own < 0 {
			reader.blank = 509*mib + 1
		}
		sampler := sampled(t, reader, tree, true)
		if state := sampler.State()[0]; state.CommandBytes != test.want || state.PeakBytes != test.want {
			t.Errorf("%s: %d MiB, not %d", name, state.CommandBytes/mib, test.want/mib)
		}
	}
	// Without a command all is counted.
	reader, _ := machine()
	reader.blank = 7 * mib
	if state := sampled(t, reader, nil, true).State()[0]; state.CommandBytes != 7*mib {
		t.Errorf("%+v", state)
	}
}

// TestRun: readings go on until the context ends, one after it, or end early; a peak
// between lists of processes makes one be asked for.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testRun)
}

func testRun(t *testing.T) {
	reader, tree := machine()
	sampler := sampled(t, reader, tree, false)
	ctx, stop := context.WithTimeout(t.Context(), 5*gather/2)
	defer stop()
	if err := sampler.Run(ctx); err != nil {
		t.Fatal(err)
	}
	sampling := sampler.Sampling()
	if sampling.Samples != 3 || sampling.Lost != "" || sampling.Seconds != 0.003 || sampling.LongestSeconds != 0.001 {
		t.Errorf("%+v", sampling)
	}
	asked := reader.asked
	sampler.reads(t)
	if reader.asked != asked {
		t.Error("processes are asked for though nothing is new")
	}
	reader.now[0] = []nvml.Process{{ID: 101, Used: 5 * mib}}
	sampler.reads(t)
	if reader.asked != asked+1 {
		t.Error("a peak is taken without a look at whose it is")
	}
	reader.lost = errors.New("the GPU has fallen off the bus")
	if err := sampler.Run(t.Context()); !errors.Is(err, reader.lost) || sampler.Sampling().Lost != reader.lost.Error() {
		t.Errorf("%v, %+v", err, sampler.Sampling())
	}
	if _, err := New(Settings{Reader: reader}); !errors.Is(err, reader.lost) {
		t.Errorf("%v", err)
	}
}

// TestStray: a GPU that the plan has no device on.
func TestStray(t *testing.T) {
	t.Parallel()
	reader, tree := machine()
	sampler := sampled(t, reader, tree, false)
	reader.now[1] = []nvml.Process{{ID: 20, Used: 400 * mib}}
	sampler.reads(t)
	if len(sampler.Stray()) != 0 {
		t.Errorf("%q", sampler.Stray())
	}
	reader.now[1] = append(reader.now[1], nvml.Process{ID: 101, Used: 90 * mib})
	sampler.strayed = time.Time{}
	sampler.reads(t)
	if len(sampler.Stray()) != 1 || !strings.HasPrefix(sampler.Stray()[0], "the command held 90.0 MiB at most of GPU-bb (H200)") {
		t.Errorf("%q", sampler.Stray())
	}
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	var growth Growth
	when := time.Duration(0)
	remain := func(bytes int64, long time.Duration) {
		for range long / (50 * time.Millisecond) {
			growth.add(when, bytes)
			when += 50 * time.Millisecond
		}
	}
	for _, level := range []int64{0, 500 * mib, 2000 * mib} { // the last two for too short to count
		remain(level, 900*time.Millisecond)
	}
	remain(1000*mib, 1200*time.Millisecond)
	remain(4000*mib, 300*time.Millisecond) // a spike
	remain(1000*mib+1, 2*time.Second)
	remain(1024*mib, 2*time.Second)
	remain(1040*mib, 2*time.Second)
	remain(900*mib, 2*time.Second)
	want := Growth{Plateaus: 4, Rises: 2, FirstUsed: 1000 * mib, LastUsed: 900 * mib, LastRise: 16 * mib}
	growth.level, growth.since, growth.counted = 0, 0, false
	if growth != want {
		t.Errorf("%+v", growth)
	}
}

// plan is one of two devices that hold 10 and 20 GiB; a context takes 1 of each.
func plan() *devicemap.Plan {
	plan := &devicemap.Plan{Imbalance: 1.3}
	plan.Model.Name = "toy"
	for i := range int64(2) {
		predicted := devicemap.Predicted{PeakAllocatedBytes: (i + 1) * 10 << 30, OverheadBytes: 1 << 30, SlackBytes: [2]int64{0, 1 << 30}}
		predicted.DeviceUsedBytes = predicted.PeakAllocatedBytes + predicted.OverheadBytes + 1<<29
		plan.Devices = append(plan.Devices, devicemap.Prediction{Device: int(i), Predicted: predicted})
	}
	return plan
}

// outlived is the status of a command whose child process remains.
const outlived = 77

// watched is the report of a command that held bytes of both GPUs.
func watched(t *testing.T, used [2]int64, status int, processes []Process) *Report {
	t.Helper()
	reader, tree := machine()
	sampler := fixtures.Must(New(Settings{Reader: reader, Places: []Place{{0, 0, []int{0}}, {1, 1, []int{1}}}, Whose: tree}))(t)
	for i := range used {
		reader.now[i] = []nvml.Process{{ID: 101, Used: used[i]}}
	}
	sampler.reads(t)
	if status != outlived {
		clear(reader.now)
		sampler.asked = time.Time{}
		sampler.reads(t)
	}
	command := &Command{Argv: []string{"x"}, PID: 100, ExitStatus: &status, Ended: "exit status"}
	return Of(&Ran{File: "plan.json", Plan: plan(), Sampler: sampler, Command: command, Processes: processes})
}

// torch is a process whose allocator allocated bytes of each GPU.
func torch(pid int, peaks ...int64) Process {
	process := Process{PID: pid, At: AtExit, WrittenSeconds: 2, StartSeconds: new(float64)}
	for i, peak := range peaks {
		process.GPUs = append(process.GPUs, ProcessGPU{Index: i, UUID: []string{"GPU-aa", "GPU-bb"}[i], AllocatedPeakBytes: peak, ReservedPeakBytes: peak + mib})
	}
	return process
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	const gib = int64(1 << 30)
	within := [2]int64{11 * gib, 22 * gib}
	for name, test := range map[string]struct {
		used      [2]int64
		status    int
		processes []Process
		want      report.Verdict
		why       string
	}{
		"read, within":          {within, 0, nil, report.Pass, "GPU 0 (H200) held 11.00 GiB at most in readings 1ms apart, 11.00 GiB to 12.00 GiB were predicted"},
		"read, a hundredth":     {[2]int64{12*gib + 100*mib, 22 * gib}, 0, nil, report.Pass, ""},
		"read, more":            {[2]int64{13 * gib, 22 * gib}, 1, nil, report.Fail, ": 1.00 GiB more"},
		"read, less":            {[2]int64{5 * gib, 22 * gib}, 0, nil, report.Inconclusive, ": 6.00 GiB less, which a spike"},
		"torch, to the byte":    {[2]int64{}, 0, []Process{torch(1, 10*gib, 20*gib)}, report.Pass, "GPU 1 (H200): 20.00 GiB were allocated at most, 20.00 GiB were predicted, at most 204.8 MiB apart"},
		"torch, more":           {within, 0, []Process{torch(1, 11*gib, 20*gib)}, report.Fail, ": 1.00 GiB more"},
		"torch, less":           {within, 0, []Process{torch(1, 9*gib, 20*gib)}, report.Fail, ": 1.00 GiB less"},
		"torch, broke off":      {within, 1, []Process{torch(1, 9*gib, 20*gib)}, report.Inconclusive, "less; the command ended: exit status"},
		"torch on one GPU":      {within, 0, []Process{torch(1, 10*gib)}, report.Pass, "GPU 1 (H200) held 22.00 GiB at most"},
		"two, at once or not":   {within, 0, []Process{torch(1, 10*gib, 15*gib), torch(2, 0, 15*gib)}, report.Inconclusive, "15.00 GiB to 30.00 GiB were allocated at most, 20.00 GiB were predicted: not every process"},
		"two, one to the byte":  {within, 0, []Process{torch(1, 10*gib, 20*gib), torch(2, 0, 5*gib)}, report.Inconclusive, "20.00 GiB to 25.00 GiB were allocated at most, 20.00 GiB were predicted: not every process"},
		"two, one of them more": {within, 0, []Process{torch(1, 10*gib, 25*gib), torch(2, 0, 15*gib)}, report.Fail, ": 5.00 GiB more"},
	} {
		result := watched(t, test.used, test.status, test.processes)
		if said := strings.Join(result.Reasons, "; "); result.Verdict != test.want || !strings.Contains(said, test.why) {
			t.Errorf("%s: %s: %s; want %s: %s", name, result.Verdict, said, test.want, test.why)
		}
	}
	out := torch(1, 9*gib, 20*gib)
	out.GPUs[0].OutOfMemory = 1
	if result := watched(t, within, 1, []Process{out}); result.Verdict != report.Fail || !strings.HasPrefix(result.Reasons[0], "GPU 0 (H200) ran out of memory: 9.00 GiB") {
		t.Errorf("%s: %q", result.Verdict, result.Reasons)
	}
}

// TestOthersDoubt: where others moved, no reading proves anything.
func TestOthersDoubt(t *testing.T) {
	t.Parallel()
	for _, used := range []int64{11 << 30, 1 << 30, 50 << 30} {
		gpu := GPUReport{Name: "H200", PredictedUsedBytes: [2]int64{11 << 30, 12 << 30}, PeakUsedBytes: used, Others: "process 5 came"}
		if verdict, reason := gpu.judgeUsed("GPU 0", new(Report)); verdict != report.Inconclusive || !strings.HasSuffix(reason, ", while others moved: process 5 came") {
			t.Errorf("%d: %s: %s", used, verdict, reason)
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	const gib = int64(1 << 30)
	result := watched(t, [2]int64{11 * gib, 22 * gib}, 0, []Process{torch(1, 10*gib, 20*gib)})
	first := &result.Devices[0]
	if *first.Measured.PeakAllocatedBytes != 10*gib || *first.Measured.PeakReservedBytes != 10*gib+mib || *first.Measured.DeviceUsedBytes != 11*gib || *first.Ratio != 1 || first.Measured.PeakAllocatedRange != nil {
		t.Errorf("%+v", first.Measured)
	}
	if *result.Imbalance.Measured != 20./15 || result.Imbalance.Predicted != 1.3 || *result.GPUs[1].Processes != 1 {
		t.Errorf("%v, %+v", *result.Imbalance.Measured, result.GPUs[1])
	}
	result = watched(t, [2]int64{11 * gib, 22 * gib}, 0, nil)
	if first := &result.Devices[0]; first.Measured.PeakAllocatedBytes != nil || *first.Ratio != 11/11.5 {
		t.Errorf("%+v, %v", first.Measured, *first.Ratio)
	}
	if *result.Imbalance.Measured != 22/16.5 {
		t.Errorf("%v", *result.Imbalance.Measured)
	}
}

func TestOutlived(t *testing.T) {
	t.Parallel()
	if result := watched(t, [2]int64{0, 3 << 30}, outlived, nil); len(result.Notes) != 1 || result.Notes[0] != "the command has ended, and processes of it are on GPU 1 still: 1, with 3.00 GiB" {
		t.Errorf("%q", result.Notes)
	}
}

// TestBuildUp: what the first GPU has beyond its prediction, and no other has.
func TestBuildUp(t *testing.T) {
	t.Parallel()
	const gib = int64(1 << 30)
	if result := watched(t, [2]int64{13 * gib, 24 * gib}, 0, nil); len(result.Notes) != 0 {
		t.Errorf("%q", result.Notes)
	}
	result := watched(t, [2]int64{13 * gib, 22 * gib}, 0, nil)
	if len(result.Notes) != 1 || result.Notes[0] != "memory builds up on GPU 0: it held 1.00 GiB beyond its prediction, more than any other GPU" {
		t.Errorf("%q", result.Notes)
	}
	three, one := 3, 1
	result.GPUs[0].Processes, result.GPUs[1].Processes = &three, &one
	if said := result.buildUp(); len(said) != 1 || !strings.Contains(said[0], "; 3 processes of the command were on it, on each other GPU at most 1") {
		t.Errorf("%q", said)
	}
}
