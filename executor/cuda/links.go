//go:build cuda && linux && cgo && amd64

package cuda

import (
	"fmt"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
)

// staged reports whether messages go by way of the host, because the options ask for it or because
// GPUs do not reach each other.
func staged(asked executor.Transport, link *schedule.Link) (bool, error) {
	if asked == executor.HostTransport {
		return true, nil
	}
	from, to := of(link.From), of(link.To)
	reaches, err := from.gpu.Reaches(to.gpu.Device)
	if err == nil && !reaches && asked == executor.PeerTransport {
		err = fmt.Errorf("%s does not reach %s, into which it sends %s: --transport host goes by way of the host", from.gpu.place(), to.gpu.place(), link.Channel.Name)
	}
	return !reaches || to.closed && from.gpu != to.gpu, err
}

// senders returns the other GPUs that write into a device's slots.
func senders(links []*schedule.Link, into *device) (peers []*driver.Device) {
	known := map[*gpu]bool{into.gpu: true}
	for _, link := range links {
		if gpu := of(link.From).gpu; of(link.To) == into && !link.Staged && !known[gpu] {
			known[gpu] = true
			peers = append(peers, gpu.Device)
		}
	}
	return peers
}

// stage makes the relays of all links that need one, now that it is known which arenas
// are closed.
func stage(links []*schedule.Link) error {
	for _, link := range links {
		from, to := of(link.From), of(link.To)
		link.Staged = link.Staged || to.closed && from.gpu != to.gpu
		if !link.Staged {
			continue
		}
		if err := link.Stage(); err != nil {
			return err
		}
	}
	return nil
}
