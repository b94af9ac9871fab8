package gateway

import (
	"net"
	"net/netip"
)

// addresses are those at which a picker may ask for a report of the GPU. A question for another address was passed on by a program there.
func (k *card) addresses() (own []netip.AddrPort) {
	if list := k.node.spec.Agent.Advertise; list != nil {
		return []netip.AddrPort{netip.MustParseAddrPort(list[k.gpu])}
	}
	at := k.at.AddrPort()
	if !at.Addr().IsUnspecified() {
		return []netip.AddrPort{netip.AddrPortFrom(at.Addr().Unmap(), at.Port())}
	}
	// In a pod, these are the pod's. They may change, so they are read each time. A mesh's proxy connects from within, so the connection does not
	// show them.
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range list {
		// Each machine has the same loopback addresses.
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() {
			if addr, ok := netip.AddrFromSlice(ip.IP); ok {
				own = append(own, netip.AddrPortFrom(addr.Unmap(), at.Port()))
			}
		}
	}
	return own
}
