package watch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/executor/nvml"
)

// The program in place of NVML and how often it reports the memory in use. Then how often it is
// started again to list processes, and how long its first answer may take.
const (
	smiProgram = "nvidia-smi"
	smiOften   = 100 * time.Millisecond
	smiWhose   = 2 * time.Second
	smiPatient = 20 * time.Second // drivers that no one uses are loaded first
)

const smiFormat = "--format=csv,noheader,nounits"

// reading is the memory in use on the followed GPUs, at a time since the first reading.
type reading struct {
	when time.Duration
	used []int64
}

// smiReader reads by nvidia-smi, which reports the memory in use again and again.
type smiReader struct {
	program string
	gpus    []GPU
	source  Source
	stream  *exec.Cmd
	says    io.ReadCloser // the output of stream
	stop    chan struct{}
	gone    sync.WaitGroup

	lock    sync.Mutex
	used    []int64
	started time.Time     // of the first reading that is followed
	which   []int         // GPUs that are followed
	taken   []reading     // not taken yet
	fresh   chan struct{} // closed with the first reading of all GPUs
	whose   map[string][]nvml.Process
	lost    error // why there are no more readings
	mute    error // why processes are not listed
}

func openSMI(program string, often, whose, patient time.Duration) (*smiReader, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("no %s either: %w", smiProgram, errors.Unwrap(err))
	}
	text, err := output(context.Background(), patient, path, "--query-gpu=index,uuid,name,memory.total,memory.used,mig.mode.current,driver_version", smiFormat)
	if err != nil {
		return nil, err
	}
	gpus, used, driver, err := parseGPUs(text)
	if err == nil && len(gpus) == 0 {
		err = fmt.Errorf("%s shows no GPU", smiProgram)
	}
	if err != nil {
		return nil, err
	}
	reader := &smiReader{
		program: path, gpus: gpus, used: used, stop: make(chan struct{}), fresh: make(chan struct{}),
		source: Source{
			Name: smiProgram + ", driver " + driver, IntervalSeconds: often.Seconds(), GranuleBytes: mebibyte,
			Note: "this devmap was built without NVML: nvidia-smi gives whole MiB ten times a second, and the processes every two seconds",
		},
	}
	if err := reader.begin(often, whose, patient); err != nil {
		return nil, err
	}
	return reader, nil
}

// stuckError is a program that has printed nothing for this long.
type stuckError time.Duration

func (err stuckError) Error() string {
	return fmt.Sprintf("%s has printed nothing for %v: it or the driver is stuck (run %s to check)", smiProgram, time.Duration(err), smiProgram)
}

// output runs the program once. It waits neither for processes that the program has started, nor
// for the program itself if that does not end when it is killed.
func output(ctx context.Context, patient time.Duration, path string, args ...string) (string, error) {
	ctx, stop := context.WithTimeoutCause(ctx, patient, stuckError(patient))
	defer stop()
	command := exec.CommandContext(ctx, path, args...) //nolint:gosec // it is nvidia-smi, as PATH has it
	command.WaitDelay = time.Second
	apart(command)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	ended := make(chan error, 1)
	go func() { ended <- command.Run() }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		return "", fmt.Errorf("%s: %w", args[0], context.Cause(ctx))
	}
	if err != nil {
		said := strings.Join(strings.Fields(out.String()+" "+problems.String()), " ")
		return "", fmt.Errorf("%s %s: %w: %s", smiProgram, args[0], err, said)
	}
	return out.String(), nil
}

// begin has the program report the memory in use from now on.
func (reader *smiReader) begin(often, whose, patient time.Duration) error {
	loop := fmt.Sprintf("--loop-ms=%d", often.Milliseconds())
	reader.stream = exec.Command(reader.program, "--query-gpu=index,memory.used", smiFormat, loop) //nolint:gosec // likewise
	apart(reader.stream)
	var err error
	if reader.says, err = reader.stream.StdoutPipe(); err != nil {
		return err
	}
	if err := reader.stream.Start(); err != nil {
		return fmt.Errorf("%s: %w", smiProgram, err)
	}
	reader.askWhose(context.Background(), patient)
	reader.gone.Go(func() { reader.listen(reader.says) })
	reader.gone.Go(func() {
		for tick := time.NewTicker(whose); ; {
			select {
			case <-tick.C:
				reader.askAgain()
			case <-reader.stop:
				tick.Stop()
				return
			}
		}
	})
	select {
	case <-reader.fresh:
	case <-time.After(patient):
		reader.lose(stuckError(patient))
	}
	reader.lock.Lock()
	lost := reader.lost
	reader.lock.Unlock()
	if lost != nil {
		go reader.Close() //nolint:errcheck // the first error counts, and a stuck program may not end
	}
	return lost
}

// listen takes the reports until there are no more.
func (reader *smiReader) listen(says io.Reader) {
	defer reader.lose(fmt.Errorf("%s ended", smiProgram))
	reported := make(map[int]bool)
	for lines := bufio.NewScanner(says); lines.Scan(); {
		index, bytes, err := parseUsed(lines.Text(), len(reader.gpus))
		if err != nil {
			reader.lose(err)
			return
		}
		reader.lock.Lock()
		reader.used[index] = bytes
		if index == len(reader.gpus)-1 {
			reader.keep()
		}
		reader.lock.Unlock()
		if reported[index] = true; len(reported) == len(reader.gpus) {
			reader.wake()
		}
	}
}

func (reader *smiReader) lose(why error) {
	reader.lock.Lock()
	if reader.lost == nil {
		reader.lost = why
	}
	reader.lock.Unlock()
	reader.wake()
}

// wake ends the wait for the first reading.
func (reader *smiReader) wake() {
	reader.lock.Lock()
	defer reader.lock.Unlock()
	select {
	case <-reader.fresh:
	default:
		close(reader.fresh)
	}
}

// askAgain lists the processes on the GPUs again. Closing the reader ends the call.
func (reader *smiReader) askAgain() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		select {
		case <-reader.stop:
			stop()
		case <-ctx.Done():
		}
	}()
	reader.askWhose(ctx, smiPatient)
}

// askWhose lists the processes on the GPUs.
func (reader *smiReader) askWhose(ctx context.Context, patient time.Duration) {
	text, err := output(ctx, patient, reader.program, "--query-compute-apps=gpu_uuid,pid,used_gpu_memory", smiFormat)
	var whose map[string][]nvml.Process
	if err == nil {
		whose, err = parseProcesses(text)
	}
	reader.lock.Lock()
	reader.whose, reader.mute = whose, err
	reader.lock.Unlock()
}

func (reader *smiReader) Source() Source { return reader.source }
func (reader *smiReader) GPUs() []GPU    { return reader.gpus }

func (reader *smiReader) Used(into []int64) error {
	reader.lock.Lock()
	defer reader.lock.Unlock()
	copy(into, reader.used)
	return reader.lost
}

// keep adds a reading if GPUs are followed.
func (reader *smiReader) keep() {
	if reader.which == nil {
		return
	}
	used := make([]int64, len(reader.which))
	for i, gpu := range reader.which {
		used[i] = reader.used[gpu]
	}
	reader.taken = append(reader.taken, reading{time.Since(reader.started), used})
}

func (reader *smiReader) Follow(gpus []int) error {
	reader.lock.Lock()
	defer reader.lock.Unlock()
	reader.started, reader.which = time.Now(), gpus
	reader.keep()
	return nil
}

func (reader *smiReader) Take(each func(when time.Duration, used []int64)) error {
	reader.lock.Lock()
	taken, lost := reader.taken, reader.lost
	reader.taken = nil
	reader.lock.Unlock()
	for i := range taken {
		each(taken[i].when, taken[i].used)
	}
	if len(taken) > 0 {
		return nil
	}
	return lost
}

func (reader *smiReader) Processes(gpu int) ([]nvml.Process, error) {
	reader.lock.Lock()
	defer reader.lock.Unlock()
	return reader.whose[reader.gpus[gpu].UUID], reader.mute
}

// Close ends the program. If it is a script that started another program, the other ends when no
// one reads its output.
func (reader *smiReader) Close() error {
	close(reader.stop)
	reader.stream.Process.Kill() //nolint:errcheck // it may have ended
	reader.says.Close()          //nolint:errcheck // likewise
	reader.gone.Wait()
	reader.stream.Wait() //nolint:errcheck // it was killed
	return nil
}
