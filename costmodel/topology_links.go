package costmodel

// link is the link between two devices, the reverse one if only that is given.
func (topology *Topology) link(from, to int) *Link {
	var back *Link
	for i := range topology.Links {
		link := &topology.Links[i]
		switch {
		case link.From == from && link.To == to:
			return link
		case link.From == to && link.To == from:
			back = link
		}
	}
	return back
}

// sameHost reports devices that the topology names one host for.
func (topology *Topology) sameHost(a, b int) bool {
	return topology.Devices[a].Host != "" && topology.Devices[a].Host == topology.Devices[b].Host
}

// apart reports devices on two hosts with a known rate between them.
func (topology *Topology) apart(a, b int) bool {
	device, dev := &topology.Devices[a], &topology.Devices[b]
	return device.Host != dev.Host && min(device.HostBytesPerSecond, dev.HostBytesPerSecond) > 0
}

// Linked reports that data can go from one device to the other. They need a link, a known rate
// between their hosts, or one host. Devices of a topology without links use their ports.
func (topology *Topology) Linked(from, to int) bool {
	switch {
	case from == to || topology.link(from, to) != nil:
		return true
	case topology.Devices[from].Host != topology.Devices[to].Host:
		return topology.apart(from, to)
	}
	return len(topology.Links) == 0 || topology.sameHost(from, to)
}

// SendSeconds is the time of a copy between two devices: by their link, else by the slower of their
// ports; 0 if their rates are unknown.
func (topology *Topology) SendSeconds(from, to int, bytes int64) float64 {
	if link := topology.link(from, to); link != nil {
		return link.LatencySeconds + float64(bytes)/link.BytesPerSecond
	}
	device, dev := &topology.Devices[from], &topology.Devices[to]
	rate := min(device.LinkBytesPerSecond, dev.LinkBytesPerSecond)
	if topology.apart(from, to) {
		rate = min(device.HostBytesPerSecond, dev.HostBytesPerSecond)
	}
	if rate <= 0 {
		return 0
	}
	return float64(bytes) / rate
}
