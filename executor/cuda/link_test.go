//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// Messages by way of the host make the same bytes as messages from arena to arena,
// on one GPU and on several that do not reach each other.
func TestByWayOfTheHost(t *testing.T) {
	for name, job := range forms(t) {
		want := make([][]byte, len(job.Program.Devices))
		for i := range want {
			want[i] = bytes.Repeat([]byte{executor.Poison}, int(job.Program.Devices[i].Arena))
		}
		inTurn(t, job.Program, want)
		inTurn(t, job.Program, want)
		for _, gpus := range [][]int{nil, {0, 0, 0, 0}, {1, 0, 1, 0}} {
			for _, transport := range []executor.Transport{executor.AutoTransport, executor.HostTransport} {
				t.Run(fmt.Sprint(name, gpus, transport), func(t *testing.T) {
					t.Setenv("FAKE_CUDA_PEERS", "0")
					if gpus != nil {
						gpus = gpus[:len(want)]
					}
					machine := opened(t, made(t, executor.GPUOptions{Devices: gpus, Transport: transport}), job.Program)
					for number := range int64(2) {
						if _, err := machine.Step(context.Background(), &executor.Step{Number: number + 1}); err != nil {
							t.Fatal(err)
						}
					}
					for i, got := range contents(t, machine) {
						if !bytes.Equal(got, want[i]) {
							t.Errorf("device %d has other bytes", i)
						}
					}
					for _, link := range machine.Links()[2*len(want):] {
						staged := transport == executor.HostTransport || machine.devices[link.From].gpu != machine.devices[link.To].gpu
						if (link.Transport == string(executor.HostTransport)) != staged || (link.Staging > 0) != staged || link.Checked == 0 {
							t.Errorf("%+v", link)
						}
					}
				})
			}
		}
	}
}

// Messages of many parts go round the relay one after another, and the rest of a slot is
// poison.
func TestRelayOfManyParts(t *testing.T) {
	const most, count = 3*4<<20 + 4096, 3 // a part of a relay has 4 MiB
	var text strings.Builder
	fmt.Fprintf(&text, "device 0 arena %d budget %[1]d\ndevice 1 arena %d budget %[2]d\nchannel act[1] 0>1 slots 2 bytes %[3]d\n", count*most, 2*most, most)
	for i := range count {
		fmt.Fprintf(&text, "buffer 0 out[%d] %d +%d stream\n", i, i*most, most-4096*i)
	}
	fmt.Fprintf(&text, "buffer 1 slot[0] 0 +%d slot\nbuffer 1 slot[1] %[1]d +%[1]d slot\n", most)
	for i := range count {
		fmt.Fprintf(&text, "0.%d compute zero >out[%[1]d]\n", i)
	}
	for i := range count {
		fmt.Fprintf(&text, "0.%d compute send act[1]#%d out[%[2]d]\n", count+i, i)
	}
	for i := range count {
		fmt.Fprintf(&text, "1.%d compute recv act[1]#%d >slot[%d]\n1.%d compute fence slot[%[3]d]\n1.%[5]d compute free act[1]#%[2]d\n", 3*i, i, i%2, 3*i+1, 3*i+2)
	}
	for _, gpus := range [][]int{{0, 0}, {0, 1}} {
		t.Run(fmt.Sprint(gpus), func(t *testing.T) {
			machine := opened(t, made(t, executor.GPUOptions{Devices: gpus, Transport: executor.HostTransport}), parsed(t, text.String()))
			data, message := make([]byte, count*most), 0
			for i := range data {
				data[i] = byte(i ^ i>>9 ^ i>>17)
			}
			for range 3 {
				if err := machine.Write(0, 0, data); err != nil {
					t.Fatal(err)
				}
				message = 0
				_, err := machine.Step(context.Background(), &executor.Step{Number: 1, Fence: func(int32) error {
					got := make([]byte, most)
					if err := machine.Read(1, int64(message%2*most), got); err != nil {
						return err
					}
					size := most - 4096*message
					want := append(bytes.Clone(data[message*most:message*most+size]), bytes.Repeat([]byte{executor.Poison}, most-size)...)
					message++
					if !bytes.Equal(got, want) {
						return fmt.Errorf("message %d has other bytes", message)
					}
					return nil
				}})
				if err != nil || message != count {
					t.Fatalf("%v after %d messages", err, message)
				}
				data[7]++
			}
		})
	}
}

// Open reports a path that carries other bytes, and leaks nothing.
func TestTrials(t *testing.T) {
	job := forms(t)["device map"]
	of, err := bind.New(job.Graph, job.Workload, job.Recipe, job.Program)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, transport := range []executor.Transport{executor.PeerTransport, executor.HostTransport} {
		for at := int64(1); ; at++ {
			backend := made(t, executor.GPUOptions{Devices: []int{0, 1, 1, 0}, Transport: transport, Fault: executor.Fault{Kind: executor.CorruptPath, At: at}})
			backend.kernels["toy"] = nil
			_, err := backend.Open(context.Background(), of)
			var path *executor.PathError
			if !errors.As(err, &path) {
				if at <= 4 || !strings.Contains(fmt.Sprint(err), "there is no CUDA kernel") {
					t.Errorf("%s %d: %v", transport, at, err)
				}
				break
			}
			if path.Byte != path.Bytes/2 || path.Got != path.Want^1 || !strings.Contains(path.Path, "(corrupt@path was asked for)") || seen[path.Path] {
				t.Fatalf("%s %d: %v", transport, at, err) // a path that is wrong on its own would never end the loop
			}
			if peer := strings.Contains(path.Path, "transport peer"); path.Peer != peer || strings.HasSuffix(path.Error(), "; --transport host goes another way") != peer {
				t.Errorf("%s %d: %v", transport, at, err)
			}
			if leaked := driver.Unreleased(); leaked != "" {
				t.Errorf("the process still holds %s", leaked)
			}
			seen[path.Path] = true
		}
		for _, want := range []string{
			"the path from the host to device 0 on GPU 0 (Fake 0) and back",
			"the path from device 0 on GPU 0 (Fake 0) to device 1 on GPU 1 (Fake 1), transport " + string(transport),
		} {
			if want += " (corrupt@path was asked for)"; !seen[want] {
				t.Errorf("%v are without %s", seen, want)
			}
		}
		delete(seen, "the path from the host to device 0 on GPU 0 (Fake 0) and back (corrupt@path was asked for)")
		for path := range seen {
			if strings.Contains(path, "from the host") {
				delete(seen, path)
			}
		}
	}
}

// GPUs that do not reach each other are no peers, whatever is asked.
func TestNoPeers(t *testing.T) {
	t.Setenv("FAKE_CUDA_PEERS", "0")
	of := parsed(t, backendtest.PassOn(1, 2))
	_, err := made(t, executor.GPUOptions{Transport: executor.PeerTransport}).Open(context.Background(), &bind.Bound{Program: of})
	if want := "GPU 0 (Fake 0) does not reach GPU 1 (Fake 1), into which it sends act[1]: --transport host goes by way of the host"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if leaked := driver.Unreleased(); leaked != "" {
		t.Errorf("the process still holds %s", leaked)
	}
}

// If a driver says that GPUs reach each other and gives them no access, messages go by way
// of the host. If --transport forbids that, the error names the pair and the option.
func TestNoAccess(t *testing.T) {
	t.Setenv("FAKE_CUDA_DENIES", "1")
	of := parsed(t, backendtest.PassOn(1, 2))
	_, err := made(t, executor.GPUOptions{Transport: executor.PeerTransport}).Open(context.Background(), &bind.Bound{Program: of})
	if want := "device 1 on GPU 1 (Fake 1): GPU 0 (Fake 0) gets no access: cuMemSetAccess: CUDA_ERROR_OF_THE_FAKE (101): as the fake says: --transport host goes another way"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if leaked := driver.Unreleased(); leaked != "" {
		t.Errorf("the process still holds %s", leaked)
	}
	machine := opened(t, made(t, executor.GPUOptions{Devices: []int{0, 1}}), of)
	want := contents(t, machine)
	inTurn(t, of, want)
	if _, err := machine.Step(context.Background(), &executor.Step{Number: 1}); err != nil {
		t.Fatal(err)
	}
	for i, got := range contents(t, machine) {
		if !bytes.Equal(got, want[i]) {
			t.Errorf("device %d has other bytes", i)
		}
	}
	if link := machine.Links()[4]; link.From != 0 || link.To != 1 || link.Transport != string(executor.HostTransport) || link.Staging == 0 {
		t.Errorf("%+v", link)
	}
}

// Whichever allocation finds no memory, Open says so and leaks nothing.
func TestNothingLeaksWithoutMemory(t *testing.T) {
	wanted := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, Schedule: costmodel.GPipe, Batch: 2, MicroBatches: 2, Seq: 8}
	of := compiled(t, "llama", wanted, 2, 1).Program
	for at := 1; ; at++ {
		t.Setenv("FAKE_CUDA_FAIL", strconv.Itoa(at))
		backend := made(t, executor.GPUOptions{Transport: executor.HostTransport})
		backend.kernels["toy"] = func(*kernel.Call) (kernel.Launch, error) { return func(*kernel.Step) error { return nil }, nil }
		found, err := backend.Open(context.Background(), &bind.Bound{Program: of})
		if err == nil {
			t.Logf("%d calls need memory", at-1)
			if err := found.Close(); err != nil || at < 50 {
				t.Error(at, err)
			}
			return
		}
		var driverErr *driver.Error
		if !errors.As(err, &driverErr) || driverErr.Code != driver.OutOfMemory {
			t.Errorf("%d: %v", at, err)
		}
		if leaked := driver.Unreleased(); leaked != "" {
			t.Fatalf("%d: the process still holds %s after %v", at, leaked, err)
		}
	}
}
