package costmodel

// link is that between two devices, either way round where only one is given.
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

// apart reports devices on two hosts whose rate between hosts is known.
func (topology *Topology) apart(a, b int) bool {
	device, dev := &topology.Devices[a], &topology.Devices[b]
	return device.Host != dev.Host && min(device.HostBytesPerSecond, dev.HostBytesPerSecond) > 0
}

// Linked reports that data can go from one device to the other: by a link, between hosts at their
// known rate, inside a host, or, if a topology gives no links at all, by their ports.
func (topology *Topology) Linked(from, to int) bool {
	switch {
	case from == to || topology.link(from, to) != nil:
		return true
	case topology.Devices[from].Host != topology.Devices[to].Host:
		return topology.apart(from, to)
	}
	return len(topology.Links) == 0 || topology.sameHost(from, to)
}

// SendSeconds is the time of a copy between two devices: by their link, or by the slower of their
// ports if no link is given; 0 where their rates are not known.
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
